//! What is true of an address in this simulated world: a pure function of seed, provider and address.

use std::net::IpAddr;

use serde::Deserialize;

use super::scenario::Shares;

/// What a provider thinks of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Malicious,
    Suspicious,
    Benign,
    Unknown,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Malicious => "malicious",
            Self::Suspicious => "suspicious",
            Self::Benign => "benign",
            Self::Unknown => "unknown",
        }
    }
}

/// One round of splitmix64's finaliser (Steele, Lea, Flood 2014): every input bit reaches every output bit.
pub(super) fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The bits of a name.
pub(super) fn mix_name(seed: u64, name: &str) -> u64 {
    name.bytes().fold(mix(seed), |bits, byte| mix(bits ^ u64::from(byte)))
}

/// The bits of an address: IPv4 and its IPv6-mapped form differ.
pub(super) fn mix_address(seed: u64, ip: IpAddr) -> u64 {
    match ip {
        IpAddr::V4(v4) => mix(seed ^ u64::from(v4.to_bits())),
        IpAddr::V6(v6) => {
            let (high, low) = v6.octets().split_first_chunk().map_or((0, 0), |(high, low)| {
                (u64::from_be_bytes(*high), low.first_chunk().map_or(0, |low| u64::from_be_bytes(*low)))
            });
            mix(mix(seed ^ 6 ^ high) ^ low)
        }
    }
}

/// Whether these bits fall into a share (0 to 1) of all.
pub(super) fn falls_in(bits: u64, share: f64) -> bool {
    unit(bits) < share
}

/// 0 (included) to 1 (not), from the upper 32 bits.
fn unit(bits: u64) -> f64 {
    f64::from((bits >> 32) as u32) / (f64::from(u32::MAX) + 1.0)
}

/// What the provider with these bits (see [`mix_name`]) thinks of `ip`: mostly what all think, sometimes its own.
pub(super) fn judge(shares: &Shares, seed: u64, provider: u64, ip: IpAddr) -> Verdict {
    let own = mix_address(provider, ip);
    let bits = if falls_in(own, shares.conflict) { mix(own) } else { mix_address(seed, ip) };
    let point = unit(bits);
    if point < shares.malicious {
        Verdict::Malicious
    } else if point < shares.malicious + shares.suspicious {
        Verdict::Suspicious
    } else if point < shares.malicious + shares.suspicious + shares.benign {
        Verdict::Benign
    } else {
        Verdict::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> impl Iterator<Item = IpAddr> {
        (0..10_000_u128).map(|n| IpAddr::V6((0x2001_0db8_u128 << 96 | n).into()))
    }

    #[test]
    fn shares_come_out_as_asked() {
        let shares = Shares { malicious: 0.3, suspicious: 0.2, benign: 0.1, conflict: 0.0 };
        let provider = mix_name(1, "abuseipdb");
        let mut counts = std::collections::HashMap::new();
        for ip in addresses() {
            *counts.entry(judge(&shares, 1, provider, ip)).or_insert(0_i32) += 1;
        }
        for (verdict, due) in
            [(Verdict::Malicious, 3000), (Verdict::Suspicious, 2000), (Verdict::Benign, 1000)]
        {
            // Four standard deviations of a binomial at 10,000 draws.
            assert!((counts[&verdict] - due).abs() < 184, "{verdict:?}: {counts:?}");
        }
    }

    #[test]
    fn providers_mostly_agree() {
        let shares = Shares::default();
        let (one, two) = (mix_name(1, "abuseipdb"), mix_name(1, "virustotal"));
        let differ =
            addresses().filter(|ip| judge(&shares, 1, one, *ip) != judge(&shares, 1, two, *ip)).count();
        // About 2 × conflict × the chance that an own draw differs (0.72).
        assert!((800..1500).contains(&differ), "{differ}");
    }

    #[test]
    fn the_seed_changes_the_world() {
        let shares = Shares::default();
        let world = |seed| {
            addresses().take(64).map(|ip| judge(&shares, seed, mix_name(seed, "otx"), ip)).collect::<Vec<_>>()
        };
        assert_eq!(world(1), world(1));
        assert_ne!(world(1), world(2));
    }
}
