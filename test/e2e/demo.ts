/** Starts the demo of the review backend like a new user. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { eventually } from '../hub/harness.ts';
import { command, type Place } from './harness.ts';

/** Runs a command line that starts a demo, with a browser opener that only records addresses. Resolves when the opener is called. */
export async function startDemo(t: Test, place: Place, line: string) {
  const programs = join(place.root, 'programs');
  const opened = join(place.root, 'opened');
  mkdirSync(programs);
  for (const opener of ['xdg-open', 'open']) {
    writeFileSync(join(programs, opener), `#!/bin/sh\necho "$@" > '${opened}.new' && mv '${opened}.new' '${opened}'\n`);
    chmodSync(join(programs, opener), 0o755);
  }
  const { ORATORIO_HOME: _, ORATORIO_LOG: __, ...env } = place.env;
  writeFileSync(join(programs, 'oratorio'), `#!/bin/sh\nexec '${process.execPath}' '${command}' "$@"\n`, {
    mode: 0o755,
  });
  const child = spawn('bash', ['-c', `exec ${line}`], {
    cwd: place.root,
    env: { ...env, PATH: `${programs}:${env['PATH']}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  t.teardown(() => child.kill('SIGKILL'));
  let [stdout, stderr] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const isReady = new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (stdout.includes('leaves nothing')) resolve();
    });
    void ended.then(() => reject(new Error(`the demo ended: ${stdout}${stderr}`)));
  });
  await isReady;
  await eventually(() => existsSync(opened), 'the opener has its address');
  return { child, ended, opened, said: () => ({ stdout, stderr }) };
}

/** Address in the file that the opener receives. */
export function addressIn(opened: string): URL {
  const file = fileURLToPath(readFileSync(opened, 'utf8').trim());
  return new URL(JSON.parse(/replace\((".*")\)/.exec(readFileSync(file, 'utf8'))?.[1] ?? '""'));
}
