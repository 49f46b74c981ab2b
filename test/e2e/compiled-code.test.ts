import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { programEnvironment } from '../programs.ts';
import { command } from './harness.ts';

const entry = join(dirname(command), '..', 'dist', 'appserver', 'main.cjs');

t.test('an agent server runs the compiled code of another one, and replaces damaged files', async (t) => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-compiled-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const [workspace, cache] = [join(home, 'workspace'), join(home, 'compiled')];
  mkdirSync(join(workspace, '.oratorio'), { recursive: true });
  writeFileSync(join(workspace, '.oratorio', 'config.json'), '{}');

  /** Starts a server and ends it once the code of turns is loaded, so that each server loads the same parts. */
  async function serveOnce(): Promise<void> {
    const args = [
      '--disable-warning=ExperimentalWarning',
      entry,
      '--workspace',
      workspace,
      '--listen',
      'ws://127.0.0.1:0',
    ];
    const env = { ...programEnvironment, ORATORIO_HOME: home, ORATORIO_LOG: 'debug', NODE_COMPILE_CACHE: cache };
    const child = spawn(process.execPath, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] });
    t.teardown(() => child.kill('SIGKILL'));
    let output = '';
    let isEnding = false;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (isEnding || !output.includes('the code of turns is loaded')) return;
        // A second signal ends it at once.
        isEnding = true;
        child.kill('SIGTERM');
      });
    }
    const [code] = await once(child, 'close');
    t.equal(code, 0, output);
  }
  /** Inodes of the stored code, by file: a rewritten file has another inode. */
  const compiled = () =>
    new Map(
      readdirSync(cache, { recursive: true, encoding: 'utf8' })
        .filter((name) => /agent-server-(part-)?[0-9a-f]{16}$/.test(name))
        .sort()
        .map((name) => [join(cache, name), statSync(join(cache, name)).ino]),
    );

  await serveOnce();
  const first = compiled();
  const [programs, parts] = [/server-[^-]+$/, /part-[^-]+$/].map((kind) =>
    [...first.keys()].filter((file) => kind.test(file)),
  );
  t.equal(programs?.length, 1, 'one program for this build and this Node');
  t.ok((parts?.length ?? 0) > 0, 'the parts that it has loaded');
  await serveOnce();
  t.same(compiled(), first, 'they were used: they would have been written anew');
  const [file = '', part = ''] = [programs?.[0], parts?.[0]];
  const whole = readFileSync(file);
  const damaged = Buffer.concat([whole.subarray(0, -1), Buffer.from([(whole.at(-1) ?? 0) ^ 1])]);
  writeFileSync(file, damaged);
  await serveOnce();
  t.notOk(readFileSync(file).equals(damaged), 'damaged code is not run');
  const second = compiled();
  rmSync(part);
  await serveOnce();
  const third = compiled();
  t.same([...third.keys()], [...second.keys()], 'a part without compiled code gets some');
  t.not(third.get(file), second.get(file), 'and the program again, of which such a server may have run more');
});

t.test('a command runs the compiled code of its last run, and replaces damaged files', async (t) => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-compiled-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const cache = join(home, 'compiled');
  const env = { ...programEnvironment, ORATORIO_HOME: home, NODE_COMPILE_CACHE: cache };
  const run = (...args: string[]) => promisify(execFile)(process.execPath, [command, ...args], { cwd: home, env });
  const compiled = () =>
    new Map(
      readdirSync(cache, { recursive: true, encoding: 'utf8' })
        .filter((name) => /cli-[a-z-]+-[0-9a-f]{16}$/.test(name))
        .sort()
        .map((name) => [join(cache, name), statSync(join(cache, name)).ino]),
    );

  t.match(await run('completion', 'bash'), { stdout: 'complete -' });
  const first = compiled();
  t.ok(first.size > 1, 'the program and parts of it');
  t.ok([...first.keys()].every((file) => /cli-completion-(?:part-)?[^-]+$/.test(file)));
  t.match(await run('completion', 'bash'), { stdout: 'complete -' });
  t.same(compiled(), first, 'they were used: they would have been written anew');
  for (const file of first.keys()) {
    const whole = readFileSync(file);
    const damaged = Buffer.concat([whole.subarray(0, -1), Buffer.from([(whole.at(-1) ?? 0) ^ 1])]);
    writeFileSync(file, damaged);
    t.match(await run('completion', 'bash'), { stdout: 'complete -' });
    t.notOk(readFileSync(file).equals(damaged), 'damaged code is not run');
  }
  const own = compiled();
  t.match(await run('--version'), { stdout: /^\d/ });
  const all = compiled();
  for (const [file, inode] of own) t.equal(all.get(file), inode, 'another command has code of its own');
  t.ok(all.size > own.size);
});

t.test('no program imports node:http, which would load a client of WebSockets with it', async (t) => {
  const dist = dirname(dirname(entry));
  const programs = globSync('{appserver,checkpoints,chunks,cli,supervise}/**/*.{js,cjs}', { cwd: dist });
  const importers = programs.filter((file) =>
    /\bimport\b[^;\n]*["']node:http["']/.test(readFileSync(join(dist, file), 'utf8')),
  );
  t.ok(programs.length > 10);
  t.same(importers, []);
});
