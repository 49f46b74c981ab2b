import { execFileSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { fileFailure, stepFailure } from '../../../src/deploy/apply/failures.ts';
import { openChange, type StepOf } from '../../../src/deploy/apply/index.ts';
import { marked } from '../../../src/deploy/files/index.ts';
import { layoutOf, stackFiles } from '../../../src/deploy/layout.ts';
import type { Plan, Step } from '../../../src/deploy/stack-plan.ts';
import { apply, type Case, copyOf, installed, newCase, stateOf, temporaryDirectory } from './helpers.ts';

const file = (path: string, content: string, more: Partial<StepOf<'writeFile'>> = {}): StepOf<'writeFile'> => ({
  ...{ do: 'writeFile', path, content, mode: 0o640, isSecret: false, owner: 'theirs' },
  ...more,
});

const planOf = ({ engine }: Case, ...steps: readonly Step[]): Plan => ({
  ...{ command: 'restart', directory: engine.stack, onFailure: 'undo', reveals: [], notes: [] },
  phases: [{ name: 'files', title: 'Files', steps }],
});

t.test('a file that was changed by hand or is not managed is refused before the first step', async (t) => {
  const made = await installed(t, 'enable');
  const { caddyfile, overlay, directory } = layoutOf(made.engine.stack);
  const kinds = { editedFile: `${readFileSync(caddyfile, 'utf8')}# mine\n`, foreignFile: 'mine {}\n' } as const;
  for (const [code, content] of Object.entries(kinds)) {
    writeFileSync(caddyfile, content);
    const was = stateOf(made);
    await t.rejects(apply(made, 'disable'), { code, message: /Caddyfile/, hint: /Move it away/ });
    await t.rejects(apply(made, 'enable'), { code });
    t.strictSame(stateOf(made), was);
    t.equal(openChange(layoutOf(directory)), null);
  }
  rmSync(caddyfile);
  t.equal((await apply(made, 'disable')).outcome.state, 'done', 'one that is gone already is no obstacle');
  t.notOk(readdirSync(directory).includes(overlay));
});

t.test('a symbolic link in any part of a path is not followed when a file is written', async (t) => {
  const outside = temporaryDirectory(t);
  writeFileSync(join(outside, 'target'), 'theirs');
  mkdirSync(join(outside, 'folder'));
  writeFileSync(join(outside, 'folder', 'config.json'), 'theirs');
  const made = newCase(temporaryDirectory(t));
  const { stack } = made.engine;
  symlinkSync(join(outside, 'target'), join(stack, 'link'));
  symlinkSync(join(outside, 'folder'), join(stack, 'folder'));
  symlinkSync(join(outside, 'nothing'), join(stack, 'dangling'));
  const refused: readonly (Step & { readonly path: string })[] = [
    file('link', 'x'),
    file('dangling', 'x'),
    file('folder/config.json', 'x'),
    file('folder/new.json', 'x'),
    { do: 'removeFile', path: 'link' },
    { do: 'removeFile', path: 'folder/config.json' },
    { do: 'makeDirectory', path: 'folder', mode: 0o700 },
    { do: 'makeDirectory', path: 'folder/new', mode: 0o700 },
  ];
  for (const step of refused) {
    const first = file('first', 'must not be written');
    await t.rejects(
      apply(made, planOf(made, first, step)),
      { code: 'fileFailed', message: /link|not a directory/ },
      step.path,
    );
  }
  t.strictSame(readdirSync(stack).sort(), ['.server', 'dangling', 'folder', 'link']);
  t.strictSame(readdirSync(outside, { recursive: true }).sort(), ['folder', join('folder', 'config.json'), 'target']);
  t.equal(readFileSync(join(outside, 'target'), 'utf8'), 'theirs');
});

t.test(
  'a directory that becomes a symbolic link meanwhile fails the step, and nothing outside is touched',
  async (t) => {
    const outside = temporaryDirectory(t);
    const made = newCase(temporaryDirectory(t));
    const { stack } = made.engine;
    mkdirSync(join(stack, 'workspace'));
    const plan = planOf(made, { do: 'checkComposition' }, file('workspace/config.json', 'x'));
    const { outcome } = await apply(made, plan, {
      before: () => {
        rmSync(join(stack, 'workspace'), { recursive: true });
        symlinkSync(outside, join(stack, 'workspace'));
      },
    });
    t.match(outcome, { state: 'undone', failure: { code: 'fileFailed', message: /workspace/ } });
    t.strictSame(readdirSync(outside), []);
  },
);

t.test('a link left at the temporary file of the next write is not followed', async (t) => {
  const outside = join(temporaryDirectory(t), 'target');
  writeFileSync(outside, 'theirs');
  const made = newCase(temporaryDirectory(t));
  const { stack } = made.engine;
  const { outcome } = await apply(made, planOf(made, file('a', 'new')), {
    onJournal: (entry) => {
      if (entry.type === 'doing') symlinkSync(outside, join(stack, `.a.${entry.change}.tmp`));
    },
  });
  t.equal(outcome.state, 'done');
  t.equal(readFileSync(outside, 'utf8'), 'theirs');
  t.ok(lstatSync(join(stack, 'a')).isFile());
  t.strictSame(readdirSync(stack).sort(), ['.server', 'a']);
});

t.test('paths of a plan lead nowhere but into the stack', async (t) => {
  const made = newCase(temporaryDirectory(t));
  for (const path of ['../a', 'a/../../b', '/etc/motd', 'a//b', './a'])
    await t.rejects(apply(made, planOf(made, file(path, 'x'))), { message: /inside of the stack/ }, path);
});

t.test('only permissions differ: they are set, and put back', async (t) => {
  const made = newCase(temporaryDirectory(t));
  const path = join(made.engine.stack, 'a');
  writeFileSync(path, 'same', { mode: 0o644 });
  const was = stateOf(made);
  const modes: number[] = [];
  const before = () => {
    modes.push(statSync(path).mode & 0o7777);
    throw new Error('no');
  };
  await apply(made, planOf(made, file('a', 'same', { mode: 0o600 }), { do: 'checkComposition' }), { before });
  t.strictSame(modes, [0o600]);
  t.strictSame(stateOf(made), was);
});

t.test(
  'a file keeps its owner when it is replaced and when it is put back',
  { skip: process.getuid?.() !== 0 && 'only root can give files away' },
  async (t) => {
    const made = newCase(temporaryDirectory(t));
    const path = join(made.engine.stack, 'a');
    writeFileSync(path, 'old');
    execFileSync('chown', ['10001:10001', path]);
    const was = stateOf(made);
    const owners: number[] = [];
    const before = () => {
      owners.push(statSync(path).uid);
      throw new Error('no');
    };
    await apply(made, planOf(made, file('a', 'new'), { do: 'checkComposition' }), { before });
    t.strictSame(owners, [10_001]);
    t.strictSame(stateOf(made), was);
  },
);

t.test('a system error about a file becomes an error with its path', async (t) => {
  const failed = (code: string) => fileFailure(Object.assign(new Error('of the system'), { code }), '/stack/.env');
  for (const code of ['ENOSPC', 'EDQUOT'])
    t.match(failed(code), { code: 'diskFull', message: /\/stack\/\.env/, hint: /Make room/ });
  for (const code of ['EACCES', 'EROFS', 'EPERM', 'ENOTDIR', 'ESTALE'])
    t.match(failed(code), { code: 'fileFailed', message: /\/stack\/\.env/, cause: { code } });
  t.equal(stepFailure(Object.assign(new Error('write'), { code: 'ENOSPC' }), 'clone', 'clone:a').code, 'diskFull');
  t.equal(stepFailure('odd', 'start', 'start:backend').message, 'The step start:backend failed: odd');
});

t.test('a directory that cannot be written to fails the change, and no file is lost', async (t) => {
  const made = newCase(temporaryDirectory(t));
  const { stack } = made.engine;
  writeFileSync(join(stack, 'a'), 'old');
  writeFileSync(join(stack, 'taken'), 'a file where a directory is wanted');
  const was = stateOf(made);
  const { outcome } = await apply(
    made,
    planOf(made, file('a', 'new'), { do: 'checkComposition' }, file('missing/b', 'x')),
  );
  t.match(outcome, { state: 'undone', failure: { code: 'fileFailed', message: /missing\/b/ } });
  await t.rejects(apply(made, planOf(made, { do: 'makeDirectory', path: 'taken', mode: 0o700 })), {
    code: 'fileFailed',
  });
  await t.rejects(apply(made, planOf(made, file('.server', 'x'))), { code: 'fileFailed', message: /is a directory/ });
  t.strictSame(stateOf(made), was);
});

/** A file system of a megabyte, or null where that cannot be had. */
function smallDisk(t: Test): string | null {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-full-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=0700', 'tmpfs', directory], { stdio: 'ignore' });
  } catch {
    return null;
  }
  t.teardown(() => execFileSync('umount', ['-l', directory]));
  return directory;
}

/** Leaves no page free. */
function fill(directory: string): void {
  for (const size of [65_536, 4_096, 1])
    for (let at = 0; ; at += 1) {
      try {
        writeFileSync(join(directory, `filler-${size}-${at}`), Buffer.alloc(size));
      } catch {
        break;
      }
    }
}

t.test(
  'a disk that is full at any line of the journal: taken back whole, or gone on from when there is room',
  async (t) => {
    const disk = smallDisk(t);
    if (disk === null) {
      t.comment('A FULL DISK WAS NOT TRIED: mounting one needs root');
      return;
    }
    const from = await installed(t, 'enable');
    const gateway = file(stackFiles.overlay, marked('# another gateway\n'.repeat(400)), { mode: 0o644, owner: 'ours' });
    const env = file(stackFiles.env, 'A=1\n'.repeat(3_000), { isSecret: true, mode: 0o600 });
    for (let full = 1; full < 12; full += 1) {
      const made = copyOf(from, join(disk, `case-${full}`));
      const was = stateOf(made);
      let line = 0;
      const plan = planOf(made, env, gateway, { do: 'checkComposition' });
      const onJournal = () => {
        line += 1;
        if (line === full) fill(disk);
      };
      const { outcome } = await apply(made, plan, { onJournal });
      if (outcome.state === 'done') t.ok(full > 4, 'everything was written before');
      else {
        t.match(outcome, { state: 'undone', failure: { code: 'diskFull' } }, `full at line ${full}`);
        t.strictSame(stateOf(made), was);
      }
      for (const name of readdirSync(disk).filter((name) => name.startsWith('filler'))) rmSync(join(disk, name));
      t.equal((await apply(made, plan)).outcome.state, 'done');
      rmSync(made.directory, { recursive: true });
    }
  },
);
