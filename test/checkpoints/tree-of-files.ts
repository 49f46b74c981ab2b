/** Trees of files for the tests of checkpoints: their states as one text, and random programs that change them. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import {
  type CheckpointLimits,
  defaultLimits,
  LocalEngines,
  type RestoreResult,
  TreeCheckpoints,
  WorkspaceCheckpoints,
} from '../../src/checkpoints/index.ts';

export const limits: CheckpointLimits = { ...defaultLimits, freeBytes: 0 };

export interface Bench {
  /** The workspace. */
  readonly root: string;
  /** Place of the stores. */
  readonly stores: string;
  at(path: string): string;
  write(path: string, content: string | Buffer, mode?: number): void;
  read(path: string): string;
}

export function bench(t: Test): Bench {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-checkpoints-')));
  t.teardown(() => {
    try {
      rmSync(directory, { recursive: true, force: true });
    } catch {
      // Only root can empty a directory that is closed to writing.
      execFileSync('chmod', ['-R', 'u+rwX', directory]);
      rmSync(directory, { recursive: true, force: true });
    }
  });
  const root = join(directory, 'workspace');
  mkdirSync(root);
  const at = (path: string) => join(root, path);
  return {
    root,
    stores: join(directory, 'stores'),
    at,
    write(path, content, mode = 0o644) {
      mkdirSync(join(at(path), '..'), { recursive: true });
      rmSync(at(path), { recursive: true, force: true });
      writeFileSync(at(path), content);
      chmodSync(at(path), mode);
    },
    read: (path) => readFileSync(at(path), 'utf8'),
  };
}

/** State of a tree as checkpoints restore it, one line an entry: kind, mode, content, links. Names are bytes. */
export function stateOf(root: string): string[] {
  const lines: string[] = [];
  const visit = (directory: Buffer, shown: string) => {
    for (const name of readdirSync(directory, { encoding: 'buffer' })) {
      if (name.equals(Buffer.from('.git')) || name.equals(Buffer.from('.oratorio'))) continue;
      const path = Buffer.concat([directory, Buffer.from('/'), name]);
      const stats = lstatSync(path);
      const place = `${shown}/${name.toString('latin1')}`;
      const mode = (stats.mode & 0o7777).toString(8);
      if (stats.isSymbolicLink()) lines.push(`${place} link ${readlinkSync(path, { encoding: 'latin1' })}`);
      else if (stats.isDirectory()) {
        lines.push(`${place} directory ${mode}`);
        visit(path, place);
      } else if (stats.isFile()) {
        lines.push(
          `${place} file ${mode} ${createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 16)}`,
        );
      }
    }
  };
  visit(Buffer.from(root), '');
  return lines.sort();
}

export interface Checkpoints {
  readonly checkpoints: WorkspaceCheckpoints;
  /** Turns of conversations that were taken back. */
  readonly takenBack: [string, readonly string[]][];
  turn(turnId: string, work: () => void, threadId?: string): Promise<void>;
  undo(
    turnIds: readonly string[],
    options?: { force?: boolean; threadId?: string; paths?: string[] },
  ): Promise<RestoreResult>;
}

/** Checkpoints of a bench; closed at the end of the test. @param onStep called before each step that changes the disk */
export function checkpointsOf(
  t: Test,
  { root, stores }: Bench,
  own: Partial<CheckpointLimits> = {},
  onStep?: (step: string) => void,
): Checkpoints {
  const takenBack: [string, readonly string[]][] = [];
  const checkpoints = new WorkspaceCheckpoints({
    directory: stores,
    limits: { ...limits, ...own },
    gitEnvironment: { PATH: process.env['PATH'] ?? '' },
    rollback: (threadId, turnIds) => takenBack.push([threadId, turnIds]),
    isInUse: () => false,
    // A thread for each tree of a test would cost more than the test.
    engines: new LocalEngines(onStep),
  });
  t.teardown(() => checkpoints.close());
  return {
    checkpoints,
    takenBack,
    async turn(turnId, work, threadId = 'thread') {
      const place = { threadId, turnId, workspacePath: root };
      checkpoints.begin(place);
      await checkpoints.secure(place);
      work();
      await checkpoints.settle(place);
    },
    undo: (turnIds, { force = false, threadId = 'thread', paths } = {}) =>
      checkpoints.restore({ threadId, workspacePath: root, turnIds, paths, force, conversation: turnIds }),
  };
}

/** One step of a random program. */
export type Step = (root: string, random: (below: number) => number) => void;

/** A generator of the same numbers for the same seed (mulberry32). */
export function numbersFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const names = [
  'a',
  'b',
  'src',
  'node_modules',
  'ü',
  'with space',
  '-rf',
  'line\nfeed',
  'A',
  '.env',
  'target',
  '.gitignore',
];
const odd = [Buffer.from([0xff, 0xfe, 0x41]), Buffer.from([0xc3, 0x28])];

/** A path of up to three names; now and then one that is not UTF-8. */
function anyPath(root: string, random: (below: number) => number): Buffer {
  const depth = 1 + random(3);
  const parts = Array.from({ length: depth }, () =>
    random(20) === 0 ? (odd[random(odd.length)] ?? Buffer.from('x')) : Buffer.from(names[random(names.length)] ?? 'x'),
  );
  return Buffer.concat([Buffer.from(root), ...parts.flatMap((part) => [Buffer.from('/'), part])]);
}

const parentOf = (path: Buffer): Buffer => path.subarray(0, path.lastIndexOf('/'));
const modes = [0o644, 0o600, 0o755, 0o444, 0o664, 0o4755, 0o400];

/** Effects of edits and commands on a tree. A step that cannot be done as things are does nothing. */
const steps: readonly Step[] = [
  (root, random) => {
    const path = anyPath(root, random);
    mkdirSync(parentOf(path), { recursive: true });
    writeFileSync(path, `content ${random(1_000)}\n`.repeat(random(40)), { mode: modes[random(modes.length)] });
  },
  (root, random) => writeFileSync(anyPath(root, random), `same size ${random(10)}\n`, { flag: 'r+' }),
  (root, random) => writeFileSync(anyPath(root, random), Buffer.alloc(300_000 + random(9), random(256))),
  (root, random) => writeFileSync(anyPath(root, random), 'more\n', { flag: 'a' }),
  (root, random) => rmSync(anyPath(root, random) as unknown as string, { recursive: true }),
  (root, random) => mkdirSync(anyPath(root, random), { recursive: true, mode: random(2) === 0 ? 0o755 : 0o700 }),
  (root, random) => renameSync(anyPath(root, random), anyPath(root, random)),
  (root, random) => {
    const path = anyPath(root, random);
    // A directory without `x` would hide its content from the test itself, unless it runs as root.
    const possible = statSync(path).isDirectory() ? [0o755, 0o700, 0o775] : modes;
    chmodSync(path, possible[random(possible.length)] ?? 0o644);
  },
  (root, random) => symlinkSync(random(2) === 0 ? 'a' : '../missing/target', anyPath(root, random)),
  (root, random) => linkSync(anyPath(root, random), anyPath(root, random)),
  (root, random) => truncateSync(anyPath(root, random), random(20)),
  (root, random) => {
    const command = [
      'echo $RANDOM >> a',
      'mkdir -p src && touch src/new',
      'rm -rf node_modules',
      'cp -a src b',
      'ln -sfn src target',
    ];
    execFileSync('sh', ['-c', command[random(command.length)] ?? ''], { cwd: root, stdio: 'ignore' });
  },
];

/** Changes a tree by `count` random steps. Commands are started for a part of the programs only. */
export function runProgram(root: string, seed: number, count: number, hasCommands: boolean): void {
  const random = numbersFrom(seed);
  for (let done = 0; done < count; done += 1) {
    const step = steps[random(hasCommands ? steps.length : steps.length - 1)];
    try {
      step?.(root, random);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined && !('status' in (error as object))) throw error;
    }
  }
}

export { TreeCheckpoints };
