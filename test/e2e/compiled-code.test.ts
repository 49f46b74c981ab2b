import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { programEnvironment } from '../programs.ts';
import { command } from './harness.ts';

const entry = join(dirname(command), '..', 'dist', 'appserver', 'main.cjs');

t.test(
  'an agent server stores its compiled code when the code of turns is loaded, and the next one uses it',
  async (t) => {
    const home = t.testdir({ workspace: { '.oratorio': { 'config.json': '{}' } } });
    const [workspace, cache] = [join(home, 'workspace'), join(home, 'compiled')];
    mkdirSync(join(home, 'home'), { mode: 0o700 });
    writeFileSync(join(home, 'home', 'config.json'), '{"Dashboard":{"Port":0}}', { mode: 0o600 });

    /** Starts a server, and ends it in the turn of the event loop in which it stores its code, or later. */
    async function serveOnce(): Promise<void> {
      const words = ['--disable-warning=ExperimentalWarning', entry, '--workspace', workspace];
      const env = { ...programEnvironment, ORATORIO_HOME: join(home, 'home'), ORATORIO_LOG: 'debug' };
      const child = spawn(process.execPath, [...words, '--listen', 'ws://127.0.0.1:0'], {
        cwd: home,
        env: { ...env, NODE_COMPILE_CACHE: cache },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
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
    const stored = () =>
      readdirSync(cache, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.includes('agent-server-'))
        .map((name) => [name, statSync(join(cache, name)).ino]);

    await serveOnce();
    const first = stored();
    t.equal(first.length, 1);
    await serveOnce();
    t.same(stored(), first, 'the code was used: it would have been written anew');
  },
);
