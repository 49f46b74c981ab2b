import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { hashOf } from '../../src/checkpoints/content-reader.ts';
import type { Contents } from '../../src/checkpoints/contents.ts';
import { CheckpointDatabase } from '../../src/checkpoints/database.ts';
import type { Uncovered } from '../../src/checkpoints/entry.ts';
import { defaultLimits } from '../../src/checkpoints/limits.ts';
import { scan } from '../../src/checkpoints/scan.ts';
import { storeCandidate } from '../../src/checkpoints/store-file.ts';
import { Tree } from '../../src/checkpoints/tree.ts';
import { otherUid } from '../other-user.ts';
import { bench, checkpointsOf, stateOf } from './tree-of-files.ts';

t.test('a FIFO blocks nothing, and is named as not covered', async (t) => {
  const place = bench(t);
  execFileSync('mkfifo', [place.at('pipe')]);
  place.write('a.txt', 'a');
  const { turn, undo, checkpoints } = checkpointsOf(t, place);
  await turn('turn_001', () => {
    place.write('a.txt', 'b');
    execFileSync('mkfifo', [place.at('other')]);
  });
  t.match(await undo(['turn_001']), { kind: 'restored', notCovered: [{ path: 'other', reason: 'special' }] });
  t.equal(place.read('a.txt'), 'a');
  const [first] = await checkpoints.list('thread', place.root);
  t.match(first, { turnId: 'turn_001', isUndone: true });
  t.same(
    first?.notCovered.map(({ path, reason }) => [path, reason]),
    [
      ['other', 'special'],
      ['pipe', 'special'],
    ],
  );
});

/** Makes a unix socket that no process holds. */
async function makeSocket(path: string): Promise<void> {
  const server = createServer().listen(path);
  await once(server, 'listening');
  // Closing a server removes its socket, but not one that was renamed.
  renameSync(path, `${path}-`);
  server.close();
  await once(server, 'close');
  renameSync(`${path}-`, path);
}

t.test('FIFOs, sockets and files above 64 MiB are named before and after an undo, and stay', async (t) => {
  const place = bench(t);
  const { at, write } = place;
  const most = defaultLimits.fileBytes;
  const sparse = (name: string, size: number) => {
    write(name, '');
    truncateSync(at(name), size);
  };
  const pipe = (name: string) => execFileSync('mkfifo', [at(name)]);
  for (const name of ['became-pipe', 'became-large', 'became-socket', 'a.txt']) write(name, 'base');
  pipe('gone-pipe');
  await makeSocket(at('gone-socket'));
  sparse('gone-large', most + 1);
  sparse('grown', most + 1);
  sparse('shrunk', most + 1);
  const { turn, undo, checkpoints } = checkpointsOf(t, place);
  const sockets = at('sockets');
  mkdirSync(sockets);
  await makeSocket(join(sockets, 'one'));
  await makeSocket(join(sockets, 'two'));
  await turn('turn_001', () => {
    for (const name of ['became-pipe', 'became-socket', 'gone-pipe', 'gone-socket', 'gone-large', 'a.txt'])
      rmSync(at(name));
    pipe('became-pipe');
    pipe('made-pipe');
    renameSync(join(sockets, 'one'), at('became-socket'));
    renameSync(join(sockets, 'two'), at('made-socket'));
    sparse('made-large', most + 1);
    truncateSync(at('became-large'), most + 1);
    truncateSync(at('grown'), most + 2);
    write('shrunk', 'small');
    sparse('covered', most);
  });
  const special = ['became-pipe', 'became-socket', 'gone-pipe', 'gone-socket', 'made-pipe', 'made-socket'];
  const large = ['became-large', 'gone-large', 'grown', 'made-large', 'shrunk'];
  const expected = [
    ...special.map((path) => `${path} special`),
    ...['sockets/one special', 'sockets/two special'],
    ...large.map((path) => `${path} tooLarge`),
  ].sort();
  const named = ({ notCovered }: Uncovered) => notCovered.map(({ path, reason }) => `${path} ${reason}`).sort();
  const [listed] = await checkpoints.list('thread', place.root);
  t.same(listed && named(listed), expected, 'before');
  t.same(named(await checkpoints.diff('thread', place.root, 'turn_001', false)), expected, 'in the diff');
  const result = await undo(['turn_001']);
  t.match(result, { kind: 'restored', restored: ['a.txt', 'covered'] });
  t.same(result.kind === 'restored' && named(result), expected, 'after');
  t.same([place.read('a.txt'), existsSync(at('covered'))], ['base', false], 'a file of 64 MiB is covered');
  t.same([lstatSync(at('became-pipe')).isFIFO(), lstatSync(at('made-socket')).isSocket()], [true, true]);
  t.same([lstatSync(at('grown')).size, place.read('shrunk')], [most + 2, 'small']);
});

t.test(
  'a file and a directory that the server may not read are named before and after an undo, and stay',
  async (t) => {
    const place = bench(t);
    place.write('a.txt', 'a');
    place.write('closed/inner', 'inner');
    place.write('closed.txt', 'closed');
    const ownUid = process.geteuid?.() ?? 0;
    if (ownUid === 0) {
      // Root may read everything.
      chmodSync(join(place.root, '..'), 0o777);
      chmodSync(place.root, 0o777);
      chmodSync(place.at('a.txt'), 0o666);
    }
    for (const name of ['closed', 'closed.txt']) chmodSync(place.at(name), 0);
    const asServer = async <T>(work: () => Promise<T>): Promise<T> => {
      if (ownUid === 0) process.seteuid?.(otherUid);
      try {
        return await work();
      } finally {
        if (ownUid === 0) process.seteuid?.(ownUid);
      }
    };
    const { turn, undo, checkpoints } = checkpointsOf(t, place);
    const notCovered = [
      { path: 'closed', reason: 'unreadable' },
      { path: 'closed.txt', reason: 'unreadable' },
    ];
    await asServer(async () => {
      await turn('turn_001', () => writeFileSync(place.at('a.txt'), 'b'));
      t.match(await checkpoints.list('thread', place.root), [{ notCovered, notCoveredTotal: 2 }]);
      t.match(await undo(['turn_001']), { kind: 'restored', restored: ['a.txt'] });
      t.equal(place.read('a.txt'), 'a', 'control: what can be read is restored');
    });
    for (const name of ['closed', 'closed.txt']) chmodSync(place.at(name), 0o700);
    t.same([place.read('closed/inner'), place.read('closed.txt')], ['inner', 'closed']);
  },
);

t.test('a file that changes while it is read is named after three tries', async (t) => {
  for (const changes of [1, 2, 3]) {
    const place = bench(t);
    place.write('log', 'x');
    const tree = new Tree(place.root);
    t.teardown(() => tree.close());
    let reads = 0;
    // Stores nothing, and writes to the file in the middle of its read.
    const contents = {
      put: (piece: Buffer) => {
        reads += 1;
        if (reads <= changes) appendFileSync(place.at('log'), 'y');
        return hashOf(piece);
      },
    } as unknown as Contents;
    const candidate = { path: 'log', kind: 'file', mode: 0o644, size: 1, mtime: 0, ctime: 0, ino: 0 } as const;
    const stored = storeCandidate(candidate, { tree, contents, maxBytes: 100 });
    const steady = { kind: 'file', size: 1 + changes, hash: hashOf(Buffer.from(`x${'y'.repeat(changes)}`)) };
    t.match(stored, changes < 3 ? steady : { kind: 'skipped', target: 'changing' }, `${changes} changes`);
    t.equal(reads, Math.min(3, changes + 1));
  }
});

t.test('file systems that are mounted in a directory are named, and not entered', async (t) => {
  const device = (path: string) => lstatSync(path).dev;
  const mounted = existsSync('/dev/shm') && device('/dev/shm') !== device('/dev');
  if (!mounted) return t.pass('no file system is mounted below /dev');
  const tree = new Tree('/dev');
  t.teardown(() => tree.close());
  const { candidates } = scan({
    tree,
    known: new Map(),
    limits: defaultLimits,
    leftOut: new Map(),
    omitted: new Set(),
  });
  t.match(
    candidates.find(({ path }) => path === 'shm'),
    { kind: 'skipped', reason: 'otherFileSystem' },
  );
  t.notOk(candidates.some(({ path }) => path.startsWith('shm/')));
  t.match(
    candidates.find(({ path }) => path === 'null'),
    { reason: 'special' },
    'control',
  );
});

t.test('of many entries that are not covered the first are listed, and all counted', async (t) => {
  const place = bench(t);
  const names = Array.from({ length: 203 }, (_, number) => `pipe-${String(number).padStart(3, '0')}`);
  execFileSync('mkfifo', names, { cwd: place.root });
  const { turn, checkpoints } = checkpointsOf(t, place);
  await turn('turn_001', () => place.write('a.txt', 'a'));
  await turn('turn_002', () => rmSync(place.at('pipe-000')));
  const [first, second] = await checkpoints.list('thread', place.root);
  t.same(
    first?.notCovered.map(({ path }) => path),
    names.slice(0, 200),
  );
  t.same([first?.notCoveredTotal, second?.notCoveredTotal], [203, 203]);
});

t.test('files above the limit are named, and not restored', async (t) => {
  const place = bench(t);
  place.write('large', Buffer.alloc(2_000));
  place.write('small', 'small');
  execFileSync('git', ['init', '-q'], { cwd: place.root });
  place.write('.gitignore', 'ignored*\n');
  place.write('ignored-large', Buffer.alloc(700));
  const { turn, undo } = checkpointsOf(t, place, { fileBytes: 1_000, ignoredFileBytes: 500 });
  await turn('turn_001', () => {
    for (const name of ['large', 'ignored-large']) truncateSync(place.at(name), name === 'large' ? 3_000 : 800);
    place.write('small', 'other');
  });
  const result = await undo(['turn_001']);
  t.match(result, {
    kind: 'restored',
    restored: ['small'],
    notCovered: [
      { path: 'ignored-large', reason: 'ignoredTooLarge' },
      { path: 'large', reason: 'tooLarge' },
    ],
  });
  t.equal(readFileSync(place.at('large')).length, 3_000);
});

t.test('with too many entries, ignored files are left out and named', async (t) => {
  const place = bench(t);
  execFileSync('git', ['init', '-q'], { cwd: place.root });
  place.write('.gitignore', 'node_modules\n');
  for (let number = 0; number < 40; number += 1) place.write(`node_modules/${number}.js`, 'x');
  place.write('a.txt', 'a');
  const { turn, undo, checkpoints } = checkpointsOf(t, place, { entries: 20 });
  await turn('turn_001', () => place.write('a.txt', 'b'));
  t.equal((await undo(['turn_001'])).kind, 'restored');
  t.equal(place.read('a.txt'), 'a');
  const [first] = await checkpoints.list('thread', place.root);
  t.match(first?.notCovered, [{ path: 'node_modules', reason: 'overLimit' }]);

  t.test('without git the checkpoint fails', async (t) => {
    const other = bench(t);
    for (let number = 0; number < 40; number += 1) other.write(`${number}.js`, 'x');
    const { turn: otherTurn } = checkpointsOf(t, other, { entries: 20 });
    await t.rejects(
      otherTurn('turn_001', () => undefined),
      { message: /more than 20 files/ },
    );
  });
});

t.test(
  'a workspace with too much content leaves out the largest directories that git ignores, and names them',
  async (t) => {
    const place = bench(t);
    execFileSync('git', ['init', '-q'], { cwd: place.root });
    place.write('.gitignore', 'target\nsmall\n');
    place.write('target/a.o', Buffer.alloc(4_000));
    place.write('target/deps/b.o', Buffer.alloc(3_000));
    place.write('small/c.o', Buffer.alloc(500));
    place.write('a.txt', 'a');
    const { turn, undo, checkpoints } = checkpointsOf(t, place, { contentBytes: 5_000 });
    await turn('turn_001', () => {
      for (const path of ['a.txt', 'target/a.o', 'small/c.o']) place.write(path, 'changed');
    });
    const notCovered = [{ path: 'target', reason: 'overLimit', size: 7_000 }];
    t.match(await checkpoints.list('thread', place.root), [{ notCovered, notCoveredTotal: 1 }], 'before an undo asks');
    t.match(await undo(['turn_001']), { kind: 'restored', restored: ['a.txt', 'small/c.o'] });
    t.same(['a.txt', 'target/a.o'].map(place.read), ['a', 'changed']);
    t.equal(place.read('small/c.o').length, 500);

    t.test('too much that git does not ignore fails the checkpoint, with the limit', async (t) => {
      const other = bench(t);
      execFileSync('git', ['init', '-q'], { cwd: other.root });
      other.write('.gitignore', 'small\n');
      other.write('small/c.o', Buffer.alloc(500));
      other.write('large', Buffer.alloc(6_000));
      const { turn: otherTurn } = checkpointsOf(t, other, { contentBytes: 5_000 });
      await t.rejects(
        otherTurn('turn_001', () => undefined),
        { message: 'the files of the workspace have more than 5000 bytes' },
      );
    });
  },
);

t.test('a directory that was swapped for a link leads no restore outside', async (t) => {
  const place = bench(t);
  const outside = join(place.root, '..', 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'a.txt'), 'outside');
  place.write('dir/a.txt', 'inside');
  const { turn, undo } = checkpointsOf(t, place);
  await turn('turn_001', () => {
    rmSync(place.at('dir'), { recursive: true });
    symlinkSync(outside, place.at('dir'));
  });
  t.equal((await undo(['turn_001'])).kind, 'restored');
  t.equal(place.read('dir/a.txt'), 'inside');
  t.same([readdirSync(outside), readFileSync(join(outside, 'a.txt'), 'utf8')], [['a.txt'], 'outside']);
});

t.test('a staging directory that is a link receives nothing', async (t) => {
  const place = bench(t);
  const outside = join(place.root, '..', 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'precious'), 'precious');
  place.write('a.txt', 'a');
  symlinkSync(outside, place.at('.oratorio'));
  const { turn, undo } = checkpointsOf(t, place);
  await turn('turn_001', () => place.write('a.txt', 'b'));
  await t.rejects(undo(['turn_001']));
  t.same([readdirSync(outside), place.read('a.txt')], [['precious'], 'b']);
});

t.test(
  'a process that works in the workspace scans it by relative paths, until another directory takes its place',
  async (t) => {
    const place = bench(t);
    place.write('src/a.txt', 'a');
    place.write('-rf', 'odd');
    const before = stateOf(place.root);
    const home = process.cwd();
    t.teardown(() => process.chdir(home));
    process.chdir(place.root);
    const { turn, undo } = checkpointsOf(t, place);
    const change = () => {
      place.write('src/a.txt', 'changed');
      place.write('src/new/b.txt', 'new');
      rmSync(place.at('-rf'), { force: true });
    };
    await turn('turn_001', change);
    t.match(await undo(['turn_001']), { kind: 'restored' });
    t.same(stateOf(place.root), before);

    renameSync(place.root, `${place.root}-moved`);
    place.write('other.txt', 'in another directory');
    const other = stateOf(place.root);
    await turn('turn_002', change);
    t.match(await undo(['turn_002']), { kind: 'restored' });
    t.same([stateOf(place.root), stateOf(`${place.root}-moved`)], [other, before]);
  },
);

t.test('names and targets of links are bytes', async (t) => {
  const place = bench(t);
  const names = [
    Buffer.from([0x61, 0xff, 0xfe]),
    Buffer.from('-rf'),
    Buffer.from('new\nline'),
    Buffer.from('ü/../x'.slice(0, 1)),
  ];
  const at = (name: Buffer) => Buffer.concat([Buffer.from(`${place.root}/`), name]);
  for (const name of names) writeFileSync(at(name), 'before');
  symlinkSync(Buffer.from([0x2f, 0xff, 0x0a]), at(Buffer.from('link')));
  const before = stateOf(place.root);
  const { turn, undo } = checkpointsOf(t, place);
  await turn('turn_001', () => {
    for (const name of readdirSync(place.root, { encoding: 'buffer' }))
      rmSync(at(name) as unknown as string, { force: true });
  });
  t.same((await undo(['turn_001'])).kind, 'restored');
  t.same(stateOf(place.root), before);
});

t.test(
  'git’s own files of a nested repository stay as a turn left them, and a repository that it made goes whole',
  async (t) => {
    const place = bench(t);
    execFileSync('git', ['init', '-q', 'nested'], { cwd: place.root });
    place.write('nested/file', '1');
    const { turn, undo } = checkpointsOf(t, place);
    await turn('turn_001', () => {
      place.write('nested/file', '2');
      writeFileSync(place.at('nested/.git/description'), 'changed by the turn');
      execFileSync('git', ['init', '-q', 'cloned'], { cwd: place.root });
    });
    t.match(await undo(['turn_001']), { kind: 'restored' });
    t.equal(place.read('nested/file'), '1');
    t.equal(place.read('nested/.git/description'), 'changed by the turn');
    t.notOk(existsSync(place.at('cloned')));
  },
);

t.test('a file that changes while a restore runs is left, and reported', async (t) => {
  const place = bench(t);
  place.write('a/one', '1');
  place.write('b', '1');
  const { turn, undo } = checkpointsOf(t, place);
  await turn('turn_001', () => {
    place.write('b', '2');
    renameSync(place.at('a'), place.at('c'));
  });
  chmodSync(place.at('c'), 0o755);
  t.match(await undo(['turn_001']), { kind: 'restored' });
  t.same([place.read('a/one'), place.read('b'), existsSync(place.at('c'))], ['1', '1', false]);
});

t.test('old checkpoints go, and the store does not outgrow its limit', async (t) => {
  const place = bench(t);
  const { turn, undo, checkpoints } = checkpointsOf(t, place, { storeBytes: 300_000 });
  const noise = Array.from({ length: 9 }, () => randomBytes(100_000));
  const noiseOf = (number: number) => noise[number] ?? Buffer.alloc(0);
  for (let number = 1; number <= 8; number += 1) {
    await turn(`turn_00${number}`, () => place.write('noise', noiseOf(number)));
  }
  const saved = await checkpoints.list('thread', place.root);
  t.ok(saved.length < 8, `${saved.length} turns are left`);
  t.equal(saved.at(-1)?.turnId, 'turn_008');
  t.equal((await undo(['turn_008'])).kind, 'restored');
  t.same(readFileSync(place.at('noise')), noiseOf(7));
});

t.test('checkpoints older than the limit are deleted, except for the newest', async (t) => {
  for (const [ageMs, left] of [
    [-1, ['turn_002']],
    [60_000, ['turn_001', 'turn_002']],
  ] as const) {
    const place = bench(t);
    const { turn, checkpoints } = checkpointsOf(t, place, { ageMs });
    for (const turnId of ['turn_001', 'turn_002']) await turn(turnId, () => place.write('a.txt', turnId));
    const saved = await checkpoints.list('thread', place.root);
    t.same(
      saved.map(({ turnId }) => turnId),
      left,
    );
  }
  t.match(defaultLimits, { ageMs: 14 * 24 * 3_600_000, storeBytes: 5 * 2 ** 30 }, 'the documented limits');
});

t.test('a damaged database is named with the remedy, and stays unchanged', async (t) => {
  const directory = t.testdir({ store: {} });
  const file = join(directory, 'store', 'checkpoints.db');
  new CheckpointDatabase(file).close();
  const good = readFileSync(file);
  const words = { name: 'CheckpointError', message: /checkpoints\.db is damaged .* move \S+store aside/ };
  writeFileSync(file, randomBytes(good.length));
  const bad = readFileSync(file);
  t.throws(() => new CheckpointDatabase(file), words);
  t.strictSame(readFileSync(file), bad);
  // The head is whole, a table is not.
  writeFileSync(file, Buffer.concat([good.subarray(0, 4_096), randomBytes(good.length - 4_096)]));
  t.throws(() => {
    const database = new CheckpointDatabase(file);
    try {
      database.all('SELECT * FROM turns');
    } finally {
      database.close();
    }
  }, words);
});
