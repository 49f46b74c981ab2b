import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { withAddressedLock, withAddresses } from '../../scripts/lock-addresses.mjs';

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
