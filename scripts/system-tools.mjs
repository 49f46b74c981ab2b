/**
 * What the tests use of the system besides Node: bubblewrap, a browser, curl, Compose and PostgreSQL. On a Debian machine where we are root they are
 * installed when they are missing; elsewhere it is said what to install, and the tests that need it fail.
 */
import { spawnSync } from 'node:child_process';

/** By package: the names or paths under which its program may be found, and the variable that names another one. */
const wanted = new Map([
  [
    'chromium',
    {
      programs: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
      variable: 'ORATORIO_TEST_BROWSER',
    },
  ],
  ['bubblewrap', { programs: ['bwrap'] }],
  ['curl', { programs: ['curl'] }],
  ['docker-compose', { programs: ['docker-compose'], variable: 'ORATORIO_TEST_COMPOSE_V1' }],
  ['postgresql', { programs: ['postgres', '/usr/lib/postgresql/*/bin/postgres'], variable: 'ORATORIO_TEST_POSTGRES' }],
]);

const isInstalled = (program) => spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
const isAtHand = ({ programs, variable }) =>
  (variable !== undefined && process.env[variable]) || programs.some(isInstalled);

/** Stands out among the lines of a long run. */
function warn(lines) {
  console.error(['', ...lines.map((line) => `✖ ${line}`), ''].join('\n'));
}

/** Installs what is missing, where that is possible without asking anybody. */
export function ensureSystemTools() {
  // Where programs are not on the path of a shell, the tests look for them themselves, and say what is missing.
  if (process.platform !== 'linux') return;
  const missing = [...wanted].filter(([, tool]) => !isAtHand(tool)).map(([name]) => name);
  if (missing.length === 0) return;
  const advice = [
    `Not installed: ${missing.join(', ')}. Tests that need it FAIL. Install: apt-get install ${missing.join(' ')}`,
    ...[...wanted].flatMap(([name, { variable }]) =>
      variable !== undefined && missing.includes(name)
        ? [`${name}, when it is somewhere else: name it in ${variable}`]
        : [],
    ),
  ];
  if (process.getuid?.() !== 0 || !isInstalled('apt-get')) return warn(advice);
  console.error(`Installing for the tests: ${missing.join(', ')} …`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const args of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', ...missing],
  ]) {
    const { status } = spawnSync('apt-get', args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
    if (status !== 0) return warn([`apt-get ${args.join(' ')} failed.`, ...advice]);
  }
}
