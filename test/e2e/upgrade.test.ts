/** An upgrade in place: the files of the product are replaced while its processes run. */
import { cpSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import t from 'tap';
import { eventually } from '../hub/harness.ts';
import { command, makePlace, oratorio, oratorioJson } from './harness.ts';

const root = dirname(dirname(command));

/** Copies the product below `installation`, as a package manager installs it. */
function install(installation: string): void {
  const withoutMaps = { recursive: true, filter: (path: string) => !path.endsWith('.map') } as const;
  mkdirSync(installation);
  for (const part of ['bin', 'dist', 'package.json']) cpSync(join(root, part), join(installation, part), withoutMaps);
  symlinkSync(join(root, 'node_modules'), join(installation, 'node_modules'));
}

/** Puts another build in place of the installed one, whose parts have other names. */
function upgrade(installation: string): void {
  const next = `${installation}-next`;
  install(next);
  for (const directory of globSync('dist/**/chunks', { cwd: next })) {
    const parts = globSync('*.cjs', { cwd: join(next, directory) });
    const renamed = (text: string) => parts.reduce((all, name) => all.replaceAll(name, `next-${name}`), text);
    const programs = globSync('*.cjs', { cwd: join(next, dirname(directory)) });
    const texts = [
      ...programs.map((name) => join(dirname(directory), name)),
      ...(directory === 'dist/chunks' ? globSync('dist/cli/*.cjs', { cwd: next }) : []),
    ];
    for (const file of texts.map((name) => join(next, name))) writeFileSync(file, renamed(readFileSync(file, 'utf8')));
    for (const name of parts) {
      const file = join(next, directory, name);
      writeFileSync(join(dirname(file), `next-${basename(name)}`), renamed(readFileSync(file, 'utf8')));
      rmSync(file);
    }
  }
  rmSync(join(installation, 'dist'), { recursive: true });
  renameSync(join(next, 'dist'), join(installation, 'dist'));
}

t.test('turns continue after an upgrade in place, and the idle server restarts with the new program', async (t) => {
  const place = makePlace(t);
  const installation = join(place.root, 'installation');
  install(installation);
  const here = { ...place, command: join(installation, 'bin', 'oratorio.js') };
  const workspace = place.workspace('workspace', { Provider: 'demo', Supervision: { ProbeIntervalMs: 100 } });
  const up = await oratorioJson(here, 'ensure', workspace);
  const turn = (prompt: string) => oratorio(here, ['exec', '--workspace', workspace, '--yes', prompt]);

  upgrade(installation);
  const first = await turn('run: echo one > one.txt');
  t.equal(first.code, 0, `${first.stdout}${first.stderr}`);
  t.equal(readFileSync(join(workspace, 'one.txt'), 'utf8'), 'one\n');

  const restarted = await eventually(async () => {
    const record = await oratorioJson(here, 'ensure', workspace, '--no-start');
    return record.state === 'running' && record.pid !== up.pid ? record : undefined;
  }, 'the server runs the new program');
  t.equal(restarted.lastError, null, 'the restart is no failure');
  const second = await turn('run: echo two > two.txt');
  t.equal(second.code, 0, `${second.stdout}${second.stderr}`);
  const undone = await oratorioJson(here, 'undo', '--workspace', workspace);
  t.ok(undone, 'both programs save the files of their turns');
});
