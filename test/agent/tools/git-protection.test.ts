/** Git outside of the sandbox runs nothing that a sandboxed command has written. */
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { Sandboxes } from '../../../src/agent/index.ts';
import { FixedFiles } from '../../../src/agent/tools/exec/fixed-files.ts';
import { gitGuardOf } from '../../../src/agent/tools/exec/git-guard.ts';
import { repairGitDirectory } from '../../../src/agent/tools/exec/git-repair.ts';
import { until } from '../../supervise/helpers.ts';
import { attacks, batches, everyLayout, layouts, runBatch, Scene, work } from './git-attacks.ts';
import { ownWork, unlockedPath } from './own-git.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? randomInt(1_000_000) : 20_261_128;
/** Rounds in `npm test`: each plants programs in each layout, all together more than 2,000. */
const rounds = Number(process.env['ORATORIO_TEST_GIT_ATTACK_ROUNDS'] ?? 4);
const isAvailable = await (async () => {
  const sandboxes = new Sandboxes(process.env);
  return sandboxes.areAvailable().finally(() => sandboxes.close());
})();

// tap ends a process that gets this signal and has no other listener.
process.on('SIGXFSZ', () => {});

/** Does work while no file can get content. */
function withoutRoom(work: () => void): void {
  const limit = (bytes: string) => execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`]);
  limit('0');
  try {
    work();
  } finally {
    limit('unlimited');
  }
}

t.test('each attack works without the sandbox: the control', { skip: !isAvailable }, async (t) => {
  // Attacks that do not disturb each other share a repository, and all repositories a workspace.
  const groups = Map.groupBy(attacks.keys(), (at) => (attacks[at]?.isApart ? `${attacks[at]?.control}` : `${at}`));
  const repositories = [...groups.values()].map((positions) => {
    const layout = attacks[positions[0] ?? 0]?.control ?? 'plain';
    return { layout, name: 'app', attacks: positions, isCollected: false };
  });
  const scene = new Scene('off');
  t.teardown(() => scene.close());
  const executed = await runBatch(scene, { repositories });
  for (const [at, { layout, attacks: positions }] of repositories.entries())
    for (const [index, position] of positions.entries()) {
      const name = `${at}.${index} ${attacks[position]?.name} on ${layout}`;
      t.ok(
        executed.some((each) => each.includes(name)),
        name,
      );
    }
});

t.test('commits work in each layout, and configuration of git keeps its content', { skip: !isAvailable }, async (t) => {
  const scene = new Scene('required');
  t.teardown(() => scene.close());
  for (const [at, [title, make]] of Object.entries(layouts).entries()) {
    // A command cannot write a repository around the workspace.
    if (['bare', 'no repository', 'repository around the workspace'].includes(title)) continue;
    const { directory } = make(scene, `r${at}`);
    const { text, isError } = await scene.command(
      `cd ${directory} && echo x > new && git add new && git commit -q -m second && git log --oneline && git gc -q && git stash list`,
    );
    t.notOk(isError, `${title}: ${text}`);
    work(scene, directory, false);
    t.equal(scene.git(directory, 'status'), 0, title);
  }
});

t.test('a pointer that a background process makes is set aside while it runs', { skip: !isAvailable }, async (t) => {
  const scene = new Scene('required');
  t.teardown(() => scene.close());
  const make = layouts['hooks are a link to a missing directory'];
  const { directory, git } = make?.(scene, 'app') ?? { directory: '', git: '' };
  const isAside = (name: string) =>
    readdirSync(join(scene.workspace, git)).some((each) => each.startsWith(`${name}.removed-`));
  // The link comes back before or after the command makes a directory in its place.
  const isLink = () => lstatSync(join(scene.workspace, git, 'hooks'), { throwIfNoEntry: false })?.isSymbolicLink();
  const running = scene.command(
    `mkdir -p evil; echo "$PWD/evil" > ${git}/commondir; rm -f ${git}/hooks; mkdir ${git}/hooks; sleep 3600`,
  );
  await until('the pointer is aside', async () => isAside('commondir') && isLink() === true);
  t.notOk(existsSync(join(scene.workspace, git, 'commondir')));
  t.equal(scene.git(directory, 'status'), 0);
  scene.interrupt();
  await running.catch(() => undefined);
});

t.test('a directory that takes the place of a repository gets none of its links', async (t) => {
  const scene = new Scene('off');
  t.teardown(() => scene.close());
  const { directory } = layouts['hooks are a link into the files']?.(scene, 'app') ?? { directory: '' };
  const app = join(scene.workspace, directory);
  const guard = gitGuardOf(scene.workspace);
  await guard.open({});
  guard.settle();
  renameSync(app, `${app}.moved`);
  execFileSync('git', ['init', '-q', app]);
  execFileSync('git', ['-C', app, 'config', 'core.fsmonitor', 'false']);
  rmSync(join(app, '.git', 'hooks'), { recursive: true });
  // The watch of a directory follows it to its new name.
  writeFileSync(join(`${app}.moved`, '.git', 'commondir'), '.\n');
  const names = () => readdirSync(join(app, '.git'));
  await until('the new directory is judged', () => names().some((each) => each.startsWith('config.removed-')));
  t.notOk(lstatSync(join(app, '.git', 'hooks'), { throwIfNoEntry: false }));
  await guard.close(Symbol('sandbox'), () => undefined);
});

t.test(
  'regression: H41 git of the user runs none of 2,000 programs that commands have planted in all layouts',
  { skip: !isAvailable },
  async (t) => {
    await fc.assert(
      fc.asyncProperty(everyLayout, async (round) => {
        for (const batch of round) {
          const scene = new Scene('required');
          try {
            const executed = await runBatch(scene, batch);
            if (executed.length > 0) throw new Error(`ran: ${executed.join('\n')}`);
          } finally {
            await scene.close();
          }
        }
      }),
      { seed, numRuns: rounds, endOnFailure: true },
    );
    t.pass(`none ran, seed ${seed}`);
  },
);

t.test(
  'our own git runs no planted program, and without its locked settings it would',
  { skip: !isAvailable },
  async (t) => {
    // Without the sandbox every attack succeeds: only the locked settings are left.
    const layout = 'plain';
    for (const isLocked of [true, false]) {
      const scene = new Scene('off');
      try {
        const path = isLocked ? undefined : unlockedPath(scene);
        const planted = ['hook post-checkout', 'hook reference-transaction', 'fsmonitor', 'filter'];
        const repositories = planted.map((name) => {
          const attack = attacks.findIndex((each) => each.name === name);
          return { layout, name: 'app', attacks: [attack], isCollected: false };
        });
        const executed = await runBatch(scene, { repositories }, (directory) => ownWork(scene, directory, path));
        if (isLocked) t.strictSame(executed, []);
        else
          for (const [at, name] of planted.entries())
            t.ok(
              executed.some((each) => each.startsWith(`${at}.`)),
              name,
            );
      } finally {
        await scene.close();
      }
    }
  },
);

t.test(
  'our own git runs none of 200 programs in repositories that commands have changed',
  { skip: !isAvailable },
  async (t) => {
    await fc.assert(
      fc.asyncProperty(batches, async (batch) => {
        const scene = new Scene('off');
        try {
          const executed = await runBatch(scene, batch, (directory) => ownWork(scene, directory));
          if (executed.length > 0) throw new Error(`ran: ${executed.join('\n')}`);
        } finally {
          await scene.close();
        }
      }),
      { seed, numRuns: 1, endOnFailure: true },
    );
    t.pass(`none ran, seed ${seed}`);
  },
);

t.test('a FIFO in the place of a git file does not hold up a command', { skip: !isAvailable }, async (t) => {
  const scene = new Scene('required');
  t.teardown(() => scene.close());
  for (const place of ['new', 'other']) {
    const { text, isError } = await scene.command(`mkdir ${place}; mkfifo ${place}/.git && echo made`);
    t.notOk(isError, text);
    t.match(text, 'made');
  }
});

t.test('regression: H41 a hook with an odd name keeps no other hook from being set aside', (t) => {
  const path = join(realpathSync(mkdtempSync('/tmp/oratorio-planted-')), 'planted');
  t.teardown(() => rmSync(dirname(path), { recursive: true, force: true }));
  mkdirSync(join(path, 'hooks'), { recursive: true });
  const long = 'A'.repeat(255);
  for (const name of [long, 'post-commit']) writeFileSync(join(path, 'hooks', name), '');
  // Not every file system has names that are not UTF-8.
  if (process.platform === 'linux') writeFileSync(Buffer.from(`${path}/hooks/a\xff`, 'latin1'), '');
  writeFileSync(join(path, 'commondir'), '/elsewhere');
  const found = repairGitDirectory(path, { isKnown: () => false }).map((finding) => finding.path);
  t.strictSame(found.sort(), [join(path, 'commondir'), join(path, 'hooks', long), join(path, 'hooks/post-commit')]);
  t.end();
});

t.test(
  'regression: H41 without room for a new configuration, the planted one is set aside, too',
  { skip: process.platform !== 'linux' },
  (t) => {
    const path = join(realpathSync(mkdtempSync('/tmp/oratorio-planted-')), 'planted');
    t.teardown(() => rmSync(dirname(path), { recursive: true, force: true }));
    mkdirSync(path);
    const config = join(path, 'config');
    const text = '[user]\n\tname = A\n[core]\n\tfsmonitor = evil\n';
    writeFileSync(config, text);
    withoutRoom(() => {
      t.throws(() => writeFileSync(join(path, 'x'), 'x'), { code: 'EFBIG' }, 'control: no file takes content');
      t.match(repairGitDirectory(path, { isKnown: () => false }), [{ path: config, what: /^core\.fsmonitor; .*now/ }]);
    });
    const [aside = ''] = readdirSync(path).filter((name) => name.startsWith('config'));
    t.match(aside, /^config\.removed-/);
    t.equal(readFileSync(join(path, aside), 'utf8'), text);
    t.end();
  },
);

t.test(
  'regression: H41 a hook that is changed by its second name is emptied when there is no room for its content',
  { skip: process.platform !== 'linux' },
  (t) => {
    const path = realpathSync(mkdtempSync('/tmp/oratorio-planted-'));
    t.teardown(() => rmSync(path, { recursive: true, force: true }));
    const [hook, second] = [join(path, 'post-commit'), join(path, 'second')];
    writeFileSync(hook, 'mine', { mode: 0o755 });
    linkSync(hook, second);
    const fixed = new FixedFiles();
    fixed.add(new Map(), [{ path: hook, access: 'read' }]);
    writeFileSync(second, 'evil');
    withoutRoom(() => t.match(fixed.restore(Number.POSITIVE_INFINITY), [{ path: hook, what: /now empty/ }]));
    t.equal(readFileSync(hook, 'utf8'), '');
    t.match(fixed.restore(Number.POSITIVE_INFINITY), [{ path: hook, what: 'was changed by its second name' }]);
    t.equal(readFileSync(second, 'utf8'), 'mine', 'it comes back as soon as there is room');
    t.strictSame(fixed.restore(Number.POSITIVE_INFINITY), []);
    t.end();
  },
);

t.test(
  'a planted repository whose directories take no changes is put right for a normal user',
  { skip: process.platform !== 'linux' },
  (t) => {
    // Directories of a whole run are closed to other users.
    const parent = realpathSync(mkdtempSync('/tmp/oratorio-planted-'));
    t.teardown(() => rmSync(parent, { recursive: true, force: true }));
    const path = join(parent, 'planted');
    const drop = process.getuid?.() === 0;
    chmodSync(parent, 0o777);
    // No mode keeps root out.
    if (drop) process.seteuid?.(65_534);
    try {
      mkdirSync(join(path, 'hooks'), { recursive: true });
      writeFileSync(join(path, 'hooks/post-commit'), '');
      writeFileSync(join(path, 'config'), '[core]\n\tfsmonitor = evil\n');
      chmodSync(join(path, 'hooks'), 0o311);
      chmodSync(path, 0o511);
      t.throws(() => renameSync(join(path, 'config'), join(path, 'moved')), 'control: the directory takes no changes');
      const found = repairGitDirectory(path, { isKnown: () => true }).map((finding) => finding.path);
      t.strictSame(found, [join(path, 'config'), join(path, 'hooks/post-commit')]);
      t.equal(readFileSync(join(path, 'config'), 'utf8'), '');
    } finally {
      if (drop) process.seteuid?.(0);
    }
    t.end();
  },
);
