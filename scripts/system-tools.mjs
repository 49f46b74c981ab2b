/**
 * What the tests use of the system besides Node: a browser, curl and PostgreSQL. On a Debian machine where we are root they are
 * installed when they are missing; elsewhere the tests that need them say what to install.
 */
import { spawnSync } from 'node:child_process';

/** Package to install by the names or paths under which its program may be found. */
const wanted = new Map([
  ['chromium', ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']],
  ['curl', ['curl']],
  ['postgresql', ['postgres', '/usr/lib/postgresql/*/bin/postgres']],
]);

const isInstalled = (program) => spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;

/** Installs what is missing, where that is possible without asking anybody. */
export function ensureSystemTools() {
  if (process.platform !== 'linux' || process.env.ORATORIO_TEST_BROWSER) return;
  const missing = [...wanted].filter(([, programs]) => !programs.some(isInstalled)).map(([name]) => name);
  if (missing.length === 0) return;
  const how = `apt-get install ${missing.join(' ')}`;
  if (process.getuid?.() !== 0 || !isInstalled('apt-get')) {
    console.error(`Some tests need ${missing.join(' and ')} and will fail without; install them: ${how}`);
    return;
  }
  console.error(`Installing for the tests: ${missing.join(', ')} …`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const args of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', ...missing],
  ]) {
    const { status } = spawnSync('apt-get', args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
    if (status !== 0) return void console.error(`✖ apt-get ${args.join(' ')} failed; install them: ${how}`);
  }
}
