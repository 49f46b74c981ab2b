import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { withAddressedLock, withAddresses } from '../../scripts/lock-addresses.mjs';
import { root } from '../../scripts/toolchain.mjs';

const lock = {
  lockfileVersion: 3,
  packages: {
    '': { name: 'checkout', version: '1.0.0' },
    'node_modules/plain': { version: '2.0.1', integrity: 'sha512-a' },
    'node_modules/@scope/part': { version: '3.0.0-rc.1', integrity: 'sha512-b' },
    'node_modules/plain/node_modules/@scope/part': { version: '1.0.0', integrity: 'sha512-c' },
    'node_modules/alias': { name: 'real-name', version: '4.0.0', integrity: 'sha512-d' },
    'node_modules/from-git': { version: '5.0.0', resolved: 'git+ssh://git@host.example/from-git.git#0123' },
    'node_modules/linked': { link: true, version: '6.0.0' },
  },
};

const addressesOf = ({ packages }: ReturnType<typeof withAddresses>) =>
  Object.values(packages).map(({ resolved }) => String(resolved).replace('https://registry.invalid/', ''));

t.test('each package of the registry has the address of its tarball', async (t) => {
  const addressed = withAddresses(lock);
  t.strictSame(addressesOf(addressed), [
    'undefined',
    'plain/-/plain-2.0.1.tgz',
    '@scope/part/-/part-3.0.0-rc.1.tgz',
    '@scope/part/-/part-1.0.0.tgz',
    'real-name/-/real-name-4.0.0.tgz',
    'git+ssh://git@host.example/from-git.git#0123',
    'undefined',
  ]);
  t.match(addressed, lock, 'nothing else changes');
});

t.test('the addresses are there during the work only', async (t) => {
  const directory = t.testdir({ 'package-lock.json': JSON.stringify(lock) });
  const shrinkwrap = join(directory, 'npm-shrinkwrap.json');
  const read = () => readFileSync(shrinkwrap, 'utf8');
  t.strictSame(JSON.parse(withAddressedLock(directory, read)), withAddresses(lock));
  t.notOk(existsSync(shrinkwrap));
  t.throws(
    () =>
      withAddressedLock(directory, () => {
        throw new Error('npm is missing');
      }),
    { message: 'npm is missing' },
  );
  t.notOk(existsSync(shrinkwrap), 'nor after a failure');
  t.equal(readFileSync(join(directory, 'package-lock.json'), 'utf8'), JSON.stringify(lock));
});

/** Logs its arguments. Cannot install from addresses, as with a registry that has its tarballs elsewhere. */
const npmWithoutTarballs = `#!/usr/bin/env node
const { appendFileSync, existsSync } = require('node:fs');
const hasAddresses = existsSync('npm-shrinkwrap.json');
appendFileSync('npm.log', hasAddresses + ' ' + process.argv.slice(2).join(' ') + '\\n');
process.exitCode = hasAddresses ? 1 : 0;
`;

t.test('a registry without these tarballs is asked without addresses', async (t) => {
  const script = (name: string) => readFileSync(join(root, 'scripts', name), 'utf8');
  const checkout = t.testdir({
    'package.json': '{}',
    'package-lock.json': JSON.stringify(lock),
    node_modules: {},
    bin: { npm: npmWithoutTarballs },
    scripts: {
      'toolchain.mjs': script('toolchain.mjs'),
      'lock-addresses.mjs': script('lock-addresses.mjs'),
    },
  });
  chmodSync(join(checkout, 'bin', 'npm'), 0o755);
  const toolchain = pathToFileURL(join(checkout, 'scripts', 'toolchain.mjs')).href;
  const { status, stderr } = spawnSync(
    process.execPath,
    ['-e', `import(${JSON.stringify(toolchain)}).then((m) => (m.ensureDependencies(), m.ensureDependencies()))`],
    {
      encoding: 'utf8',
      env: { ...process.env, PATH: [join(checkout, 'bin'), process.env['PATH']].join(delimiter) },
    },
  );
  t.equal(status, 0, stderr);
  const options = 'install --no-save --no-audit --no-fund --loglevel=error';
  t.strictSame(
    readFileSync(join(checkout, 'npm.log'), 'utf8').trim().split('\n'),
    [`true ${options} --prefer-offline --replace-registry-host=always`, `false ${options}`],
    'and is not asked again once installed',
  );
  t.notOk(existsSync(join(checkout, 'npm-shrinkwrap.json')));
});
