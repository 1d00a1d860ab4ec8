use std::os::unix::fs::symlink;

use super::*;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_old_file_stays_until_the_new_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out.ndjson");
    write_whole(&target, b"old\n", 0o640).unwrap();
    let mut file = WholeFile::create(&target).unwrap();
    file.append(b"new\n").unwrap();
    assert_eq!(read(&target), "old\n");
    assert_eq!(file.partial(), folder.path().join("out.ndjson.partial"));
    file.publish().unwrap();
    assert_eq!(read(&target), "new\n");
    assert!(!file.partial().exists());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn what_was_paid_for_is_kept_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    for (line, name) in [("a\n", "out.partial"), ("b\n", "out.partial-2")] {
        let mut file = WholeFile::create(&target).unwrap();
        file.append(line.as_bytes()).unwrap();
        let kept = file.keep(true).unwrap();
        assert_eq!(kept, folder.path().join(name));
        assert_eq!(read(&kept), line);
    }
    assert_eq!(WholeFile::create(&target).unwrap().keep(false), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert!(!target.exists());
}

#[test]
fn a_planted_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (target, victim) = (folder.path().join("out"), folder.path().join("victim"));
    write_whole(&victim, b"precious\n", 0o600).unwrap();
    symlink(&victim, folder.path().join("out.partial")).unwrap();
    let mut file = WholeFile::create(&target).unwrap();
    file.append(b"new\n").unwrap();
    file.publish().unwrap();
    assert_eq!(read(&victim), "precious\n");
    assert_eq!(read(&target), "new\n");
}

#[test]
fn a_target_that_is_a_link_is_written_where_it_points() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("latest"), folder.path().join("today"));
    write_whole(&target, b"old\n", 0o600).unwrap();
    symlink(&target, &link).unwrap();
    let mut file = WholeFile::create(&link).unwrap();
    file.append(b"new\n").unwrap();
    file.publish().unwrap();
    assert!(link.is_symlink());
    assert_eq!(read(&target), "new\n");
}

#[test]
fn appending_ends_a_torn_line_and_shares_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    write_whole(&target, b"{\"torn", 0o600).unwrap();
    let mut one = AppendFile::open(&target).unwrap();
    let mut two = AppendFile::open(&target).unwrap();
    assert!(!one.is_empty());
    for number in 0..3 {
        one.append(format!("one {number}\n").as_bytes()).unwrap();
        two.append(format!("two {number}\n").as_bytes()).unwrap();
    }
    assert_eq!(read(&target), "{\"torn\none 0\ntwo 0\none 1\ntwo 1\none 2\ntwo 2\n");
}

#[test]
fn a_new_file_gets_the_mode_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("secret");
    write_whole(&target, b"x", 0o600).unwrap();
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
}
