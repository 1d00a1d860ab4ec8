use std::{
    collections::HashMap,
    fs::{OpenOptions, rename},
    io::Write,
};

use proptest::prelude::*;

use super::*;

/// What can happen to a log between two looks.
#[derive(Debug, Clone, Copy)]
enum Act {
    Lines(u8),
    Half,
    Rename,
    /// The new file is there before the writer has moved over.
    CreateFirst,
    Copytruncate,
    Look,
}

/// A writer with its file, and a follower.
struct World {
    folder: tempfile::TempDir,
    writer: File,
    follow: Follow,
    written: u32,
    half: bool,
    rotations: u32,
    unread: bool,
    seen: HashMap<String, u32>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("eve.json");
        let writer = Self::open(&path);
        let follow = Follow::new(&path, 1000);
        let seen = HashMap::new();
        Self { folder, writer, follow, written: 0, half: false, rotations: 0, unread: false, seen }
    }

    fn open(path: &Path) -> File {
        OpenOptions::new().append(true).create(true).open(path).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("eve.json")
    }

    fn end_half(&mut self) {
        if std::mem::take(&mut self.half) {
            writeln!(self.writer, "-end").unwrap();
            self.unread = true;
        }
    }

    fn look(&mut self) {
        let seen = &mut self.seen;
        self.follow.poll(|piece| count(piece, seen)).unwrap();
        self.unread = false;
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Lines(count) => {
                self.end_half();
                for _ in 0..count {
                    self.written += 1;
                    writeln!(self.writer, "line {}", self.written).unwrap();
                }
                self.unread = true;
            }
            Act::Half if !self.half => {
                self.written += 1;
                write!(self.writer, "line {}", self.written).unwrap();
                (self.half, self.unread) = (true, true);
            }
            Act::Half => self.end_half(),
            Act::Rename | Act::CreateFirst => {
                // Two rotations between two looks lose a file, as the module says.
                self.look();
                self.rotations += 1;
                rename(self.path(), self.folder.path().join(format!("eve.json.{}", self.rotations))).unwrap();
                if matches!(act, Act::CreateFirst) {
                    drop(Self::open(&self.path()));
                    self.look();
                    self.act(Act::Lines(1));
                }
                self.end_half();
                self.act(Act::Lines(1));
                self.writer = Self::open(&self.path());
                self.act(Act::Lines(1));
                self.look();
            }
            Act::Copytruncate => {
                // What was not read before the cut is lost by nature.
                self.end_half();
                self.look();
                self.writer.set_len(0).unwrap();
            }
            Act::Look => self.look(),
        }
    }
}

fn count(piece: &Piece<'_>, seen: &mut HashMap<String, u32>) {
    let Piece::Lines(text, length) = piece else { panic!("no line is that long") };
    for line in text[..*length].split_inclusive(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line).trim().replace("-end", "");
        *seen.entry(line).or_default() += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_is_lost_and_nothing_doubled(acts in prop::collection::vec(prop_oneof![
        4 => (0_u8..9).prop_map(Act::Lines), 2 => Just(Act::Half), 1 => Just(Act::Rename), 1 => Just(Act::CreateFirst),
        1 => Just(Act::Copytruncate), 4 => Just(Act::Look),
    ], 0..40)) {
        let mut world = World::new();
        for act in acts {
            world.act(act);
        }
        world.end_half();
        world.look();
        let expected: HashMap<_, _> = (1..=world.written).map(|n| (format!("line {n}"), 1)).collect();
        prop_assert_eq!(world.seen, expected);
    }
}

#[test]
fn a_file_cut_back_that_grew_again_is_recognised() {
    let mut world = World::new();
    world.act(Act::Lines(3));
    world.look();
    world.writer.set_len(0).unwrap();
    world.act(Act::Lines(5));
    world.look();
    assert_eq!(world.seen.len(), 8);
    assert_eq!(world.follow.cuts, 1);
}

#[test]
fn half_a_line_waits_and_is_given_at_the_end() {
    let mut world = World::new();
    world.act(Act::Half);
    world.look();
    assert!(world.seen.is_empty());
    assert!(!world.follow.is_behind());
    let seen = &mut world.seen;
    world.follow.finish(|piece| count(piece, seen)).unwrap();
    assert_eq!(world.seen.get("line 1"), Some(&1));
}

#[test]
fn a_file_that_is_not_there_yet_is_awaited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("eve.json");
    let (mut follow, mut lines) = (Follow::new(&path, 1000), HashMap::new());
    follow.poll(|piece| count(piece, &mut lines)).unwrap();
    writeln!(World::open(&path), "line 1").unwrap();
    follow.poll(|piece| count(piece, &mut lines)).unwrap();
    assert_eq!(lines.len(), 1);
}

#[test]
fn very_much_is_taken_in_several_looks() {
    let mut world = World::new();
    let lines = 3 * LOOK / 1000;
    let mut writer = io::BufWriter::new(&world.writer);
    (1..=lines).try_for_each(|n| writeln!(writer, "line {n:0>994}")).unwrap();
    writer.into_inner().unwrap();
    let (mut looks, mut count) = (0, 0);
    loop {
        let is_all = world.follow.poll(|piece| {
            let Piece::Lines(text, length) = piece else { panic!("no line is that long") };
            count += memchr::memchr_iter(b'\n', &text[..*length]).count();
        });
        looks += 1;
        if is_all.unwrap() {
            break;
        }
    }
    assert_eq!((looks, count), (3, lines));
}
