use proptest::prelude::*;

use super::*;

const SURICATA: &str = r#"%YAML 1.1
---
# Suricata configuration file.
suricata-version: "7.0"
vars:
  # more specific is better for alert accuracy and performance
  address-groups:
    HOME_NET: "[192.168.0.0/16,10.0.0.0/8,172.16.0.0/12]"
    #HOME_NET: "[192.168.0.0/16]"
    #HOME_NET: "any"

    EXTERNAL_NET: "!$HOME_NET"
    HTTP_SERVERS: "$HOME_NET"
  port-groups:
    HTTP_PORTS: "80"
outputs:
  - eve-log:
      enabled: yes
"#;

fn read(value: &str) -> Result<Vec<String>, HomeNetError> {
    let yaml = format!(
        "vars:\n  address-groups:\n    HOME_NET: {value}\n    DMZ: '198.51.100.0/24' # ours\n    LOOP: $LOOP\n    OUT: any\n"
    );
    home_net(&yaml).map(|networks| networks.iter().map(ToString::to_string).collect())
}

#[test]
fn the_file_as_suricata_ships_it() {
    let networks: Vec<String> = home_net(SURICATA).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(networks, ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]);
}

#[test]
fn every_form_of_a_group() {
    for (value, networks) in [
        ("192.0.2.0/24", vec!["192.0.2.0/24"]),
        ("\"192.0.2.7\"", vec!["192.0.2.7/32"]),
        ("[192.0.2.0/25, 192.0.2.128/25]", vec!["192.0.2.0/24"]),
        ("\"[$DMZ,2001:db8::/32]\"", vec!["198.51.100.0/24", "2001:db8::/32"]),
        ("[192.0.2.0/24, !192.0.2.128/25]", vec!["192.0.2.0/25"]),
        ("[192.0.2.0/30,![192.0.2.1,192.0.2.2]]", vec!["192.0.2.0/32", "192.0.2.3/32"]),
        ("[192.0.2.0 - 192.0.2.5]", vec!["192.0.2.0/30", "192.0.2.4/31"]),
        ("\"[192.0.2.0/24,\n       198.51.100.0/24]\"", vec!["192.0.2.0/24", "198.51.100.0/24"]),
    ] {
        assert_eq!(read(value).unwrap(), networks, "{value}");
    }
}

#[test]
fn what_is_no_list_of_networks_is_refused() {
    for (value, message) in [
        (
            "any",
            "HOME_NET is any, which is no list of networks; name yours with 'exclude' in the configuration",
        ),
        (
            "\"!10.0.0.0/8\"",
            "HOME_NET is '!10.0.0.0/8', which is no list of networks; name yours with 'exclude' in the configuration",
        ),
        ("$OUT", "OUT is any, which is no list of networks; name yours with 'exclude' in the configuration"),
        ("$LOOP", "the group $LOOP is not there, or names itself"),
        ("$NOWHERE", "the group $NOWHERE is not there, or names itself"),
        ("[192.0.2.0/24, intranet]", "HOME_NET holds 'intranet', which cannot be read as networks"),
        ("192.0.2.9 - 192.0.2.1", "HOME_NET holds '192.0.2.9 - 192.0.2.1', which cannot be read as networks"),
        ("\"[192.0.2.1]2\"", "HOME_NET holds '[192.0.2.1]2', which cannot be read as networks"),
        ("192.0.2.0/24]", "HOME_NET holds '192.0.2.0/24]', which cannot be read as networks"),
    ] {
        assert_eq!(read(value).unwrap_err().to_string(), message, "{value}");
    }
    assert_eq!(home_net("vars:\n  port-groups:\n    HOME_NET: 10.0.0.0/8\n"), Err(HomeNetError::Missing));
    assert!(read(&format!("{}192.0.2.1{}", "[".repeat(100_000), "]".repeat(100_000))).is_err());
    assert_eq!(home_net(""), Err(HomeNetError::Missing));
}

proptest! {
    #[test]
    fn a_difference_holds_what_it_should(from in 0..256_u32, out in 0..256_u32, from_len in 24..=32_u8, out_len in 24..=32_u8) {
        let network = |last: u32, len| IpNet::new(std::net::Ipv4Addr::from(0xC000_0200 + last).into(), len).unwrap().trunc();
        let (from, out) = (network(from, from_len), network(out, out_len));
        let left = subtract(from, out);
        for last in 0..256 {
            let ip: IpAddr = std::net::Ipv4Addr::from(0xC000_0200_u32 + last).into();
            let wanted = from.contains(&ip) && !out.contains(&ip);
            prop_assert_eq!(left.iter().any(|network| network.contains(&ip)), wanted);
        }
    }

    #[test]
    fn no_text_makes_it_fail_badly(text in any::<String>(), value in "[\\[\\]!$,a-z0-9./: -]{0,40}") {
        let _ = home_net(&text);
        let _ = read(&value);
    }
}
