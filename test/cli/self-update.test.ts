/** Updates from releases on disk, whose program is a shell script. A hostile release changes nothing. */
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import tls from 'node:tls';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { packTar, type TarHeader } from 'modern-tar';
import t, { type Test } from 'tap';
import { releaseKey } from '../../scripts/release/minisign.ts';
import type { CommandContext } from '../../src/cli/command.ts';
import { Output } from '../../src/cli/output.ts';
import {
  findRelease,
  installationAt,
  installRelease,
  type OwnInstallation,
  releaseAddress,
} from '../../src/cli/update/index.ts';
import { compareVersions } from '../../src/lib/index.ts';
import { acquireLock } from '../../src/supervise/index.ts';
import { programEnvironment } from '../programs.ts';

const platform = `${process.platform}-${process.arch}`;
type Entry = Omit<TarHeader, 'size'> & { readonly size?: number; readonly body?: string };

const scriptOf = (version: string): string => `#!/bin/sh\n[ "$1" != version ] || echo ${version}\n`;
const topOf = (version: string): string => `oratorio-${version}-${platform}`;
const program = (version: string, body = scriptOf(version)): Entry[] => [
  { name: `${topOf(version)}/`, type: 'directory', mode: 0o755 },
  { name: `${topOf(version)}/bin/oratorio`, mode: 0o755, body },
];

async function tarball(entries: readonly Entry[]): Promise<Buffer> {
  const parts = entries.map(({ body = '', size = body.length, ...header }) => ({
    header: { ...header, size: header.type === undefined ? size : 0 },
    ...(header.type === undefined && { body }),
  }));
  return gzipSync(await packTar(parts));
}

interface World {
  readonly installation: OwnInstallation;
  readonly context: CommandContext;
  readonly release: string;
  /** Writes a release; @returns its address */
  publish(version: string, archive: Buffer, sha256?: string): URL;
  /** Installed versions, the current version, and the files beside them. */
  state(): object;
}

function worldOf(t: Test): World {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-update-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const base = join(directory, 'base');
  mkdirSync(join(base, 'versions', '0.1.0'), { recursive: true });
  for (const name of ['release', 'home', 'tmp']) mkdirSync(join(directory, name));
  symlinkSync('versions/0.1.0', join(base, 'current'));
  const discard = () => new Writable({ write: (_, __, done) => done() });
  const env = { ...programEnvironment, HOME: join(directory, 'home'), TMPDIR: join(directory, 'tmp') };
  const context: CommandContext = {
    argument: undefined,
    options: {},
    lists: {},
    output: new Output({ stdout: discard(), stderr: discard(), env, json: true }),
    env,
    cwd: directory,
    absolute: (path) => path,
    home: join(directory, 'home', '.oratorio'),
    signal: new AbortController().signal,
  };
  const release = join(directory, 'release');
  return {
    installation: { kind: 'own', base, source: undefined },
    context,
    release,
    publish(version, archive, sha256 = createHash('sha256').update(archive).digest('hex')) {
      writeFileSync(join(release, `${topOf(version)}.tar.gz`), archive);
      writeFileSync(join(release, 'SHA256SUMS'), `${sha256}  ${topOf(version)}.tar.gz\n${sha256}  other.rb\n`);
      return releaseAddress(release);
    },
    state: () => ({
      current: readlinkSync(join(base, 'current')),
      versions: readdirSync(join(base, 'versions')).sort(),
      beside: readdirSync(directory).sort(),
      home: readdirSync(join(directory, 'home')),
    }),
  };
}

async function update({ installation, context }: World, address: URL): Promise<boolean> {
  const found = await findRelease(address, '/nonexistent', context.signal);
  return installRelease(context, installation, address, found);
}

t.test('a newer release is verified, tried, and becomes the current version', async (t) => {
  const world = worldOf(t);
  t.equal(await update(world, world.publish('0.2.0', await tarball(program('0.2.0')))), false, 'no Hub ran');
  t.match(world.state(), { current: 'versions/0.2.0', versions: ['0.1.0', '0.2.0'] });
  await update(world, world.publish('0.3.0', await tarball(program('0.3.0'))));
  t.match(world.state(), { current: 'versions/0.3.0', versions: ['0.2.0', '0.3.0'] }, 'the previous version stays');
  const other = await tarball(program('0.3.0', `${scriptOf('0.3.0')}# another build\n`));
  await update(world, world.publish('0.3.0', other));
  t.match(world.state(), { current: /^versions\/0\.3\.0\+[0-9a-f]{8}$/ }, 'a running build is not replaced');
});

t.test('a hostile or damaged tarball is refused, and changes nothing', async (t) => {
  const good = program('0.2.0');
  const file = (name: string, more: Partial<Entry> = {}): Entry[] => [...good, { name, body: 'x', ...more }];
  const top = topOf('0.2.0');
  const hostile = new Map<string, readonly Entry[]>([
    ['a path above', file(`${top}/../../../evil`)],
    ['an absolute path', file('/tmp/oratorio-evil')],
    ['another directory', file('elsewhere/file')],
    ['a name with a control character', file(`${top}/a\u001bb`)],
    ['a symbolic link', file(`${top}/link`, { type: 'symlink', linkname: '/etc' })],
    ['a hard link', file(`${top}/link`, { type: 'link', linkname: `${top}/bin/oratorio` })],
    ['a device', file(`${top}/device`, { type: 'character-device' })],
    ['a file twice', [...good, ...good.slice(1)]],
    ['a program that does not start', program('0.2.0', '#!/bin/sh\nexit 3\n')],
    ['a program of another version', program('0.2.0', scriptOf('0.1.9'))],
    ['a program that fails its first turn', program('0.2.0', `${scriptOf('0.2.0')}[ "$1" != exec ] || exit 1\n`)],
    ['no program', [{ name: `${top}/README.md`, body: 'text' }]],
  ]);
  for (const [name, entries] of hostile) {
    const world = worldOf(t);
    const before = world.state();
    const address = world.publish('0.2.0', await tarball(entries));
    await t.rejects(update(world, address), { code: /^(?:invalidTarball|trialFailed)$/ }, name);
    t.strictSame(world.state(), before, name);
  }
  t.notOk(existsSync('/tmp/oratorio-evil'));
  const archive = await tarball(good);
  const huge = Buffer.concat(Array(401).fill(gzipSync(Buffer.alloc(1_000_000))));
  for (const [name, bytes, sha256, code] of [
    ['a wrong checksum', archive, 'a'.repeat(64), 'wrongChecksum'],
    ['half a tarball', archive.subarray(0, archive.length / 2), undefined, 'invalidTarball'],
    ['bytes that are not gzip', Buffer.from('text'), undefined, 'invalidTarball'],
    ['a bomb', huge, undefined, 'invalidTarball'],
  ] as const) {
    const world = worldOf(t);
    const before = world.state();
    await t.rejects(update(world, world.publish('0.2.0', bytes, sha256)), { code }, name);
    t.strictSame(world.state(), before, name);
  }
});

t.test('a list without exactly one tarball of this platform is refused', async (t) => {
  const world = worldOf(t);
  const address = releaseAddress(world.release);
  const find = () => findRelease(address, '/nonexistent', world.context.signal);
  await t.rejects(find(), { code: 'unreachable' });
  const line = `${'a'.repeat(64)}  ${topOf('0.2.0')}.tar.gz\n`;
  for (const text of ['', line.replace('-0.2.0-', '-../x-'), line.replace('aaaa', 'AAAA'), line + line]) {
    writeFileSync(join(world.release, 'SHA256SUMS'), text);
    await t.rejects(find(), { code: 'invalidRelease' }, text);
  }
  writeFileSync(join(world.release, 'SHA256SUMS'), line + 'x'.repeat(1_000_001));
  await t.rejects(find(), { code: 'tooLarge' });
});

t.test('with a key, only a checksum list that the key signed for this version is accepted', async (t) => {
  const world = worldOf(t);
  const address = world.publish('0.2.0', await tarball(program('0.2.0')));
  const [key, other] = [0, 1].map(() => releaseKey(generateKeyPairSync('ed25519').privateKey));
  const root = world.release;
  writeFileSync(join(root, 'release.pub'), key?.publicKey ?? '');
  const find = () => findRelease(address, root, world.context.signal);
  await t.rejects(find(), { code: 'unreachable' }, 'a missing signature');
  const message = Buffer.from(`${createHash('sha256').update('x').digest('hex')}  x\n`);
  const sums = readFileSync(join(world.release, 'SHA256SUMS'));
  const sign = (text: string) => writeFileSync(join(world.release, 'SHA256SUMS.minisig'), text);
  for (const [name, text] of [
    ['of another key', other?.sign(sums, 'oratorio 0.2.0')],
    ['of another text', key?.sign(message, 'oratorio 0.2.0')],
    ['of another version', key?.sign(sums, 'oratorio 0.1.0')],
    ['with a changed comment', key?.sign(sums, 'oratorio 0.1.0').replace('0.1.0', '0.2.0')],
    ['of rubbish', 'x\ny\nz\n'],
  ] as const) {
    sign(text ?? '');
    await t.rejects(find(), { code: 'invalidSignature' }, name);
  }
  sign(key?.sign(sums, 'oratorio 0.2.0') ?? '');
  t.match(await find(), { version: '0.2.0', isSigned: true });
});

t.test('a second update at the same time is refused', async (t) => {
  const world = worldOf(t);
  const address = world.publish('0.2.0', await tarball(program('0.2.0')));
  const lock = acquireLock(join(world.installation.base, 'update.lock'));
  if (lock === 'held') throw new Error('the lock is free');
  await t.rejects(update(world, address), { code: 'updateUnderWay' });
  lock.release();
  await update(world, address);
  t.match(world.state(), { current: 'versions/0.2.0' });
});

t.test('an update removes the download of a killed update', async (t) => {
  const world = worldOf(t);
  mkdirSync(join(world.installation.base, 'versions', '.new-0123', 'tree'), { recursive: true });
  await update(world, world.publish('0.2.0', await tarball(program('0.2.0'))));
  t.match(world.state(), { versions: ['0.1.0', '0.2.0'] });
});

t.test('regression: the rest of a version, whose removal was killed, is removed by the next update', async (t) => {
  const world = worldOf(t);
  const rest = join(world.installation.base, 'versions', '.new-rest');
  mkdirSync(rest);
  writeFileSync(join(rest, '.digest'), `${'a'.repeat(64)}\n`);
  await update(world, world.publish('0.2.0', await tarball(program('0.2.0'))));
  t.match(world.state(), { current: 'versions/0.2.0', versions: ['0.1.0', '0.2.0'] });
});

t.test('an https release is read only over redirects to https', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-update-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(directory, name)) as [string, string];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=release', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...names], { stdio: 'ignore' });
  const authorities = tls.getCACertificates('default');
  tls.setDefaultCACertificates([...authorities, readFileSync(cert, 'utf8')]);
  t.teardown(() => tls.setDefaultCACertificates(authorities));
  const sums = `${'a'.repeat(64)}  ${topOf('0.2.0')}.tar.gz\n`;
  const redirects: Readonly<Record<string, string>> = {
    '/good/SHA256SUMS': '/files/SHA256SUMS',
    '/plain/SHA256SUMS': 'http://127.0.0.1:9/SHA256SUMS',
    '/file/SHA256SUMS': 'file:///etc/passwd',
    '/loop/SHA256SUMS': '/loop/SHA256SUMS',
  };
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, ({ url = '' }, response) => {
    const location = redirects[url];
    if (location !== undefined) response.writeHead(302, { location }).end();
    else if (url === '/files/SHA256SUMS') response.end(sums);
    else if (url === '/huge/SHA256SUMS') response.end('x'.repeat(1_000_001));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const find = (path: string) => {
    const { port } = server.address() as AddressInfo;
    return findRelease(
      releaseAddress(`https://127.0.0.1:${port}/${path}`),
      '/nonexistent',
      new AbortController().signal,
    );
  };
  t.match(await find('good'), { version: '0.2.0' });
  for (const [path, code] of [
    ['plain', 'insecure'],
    ['file', 'insecure'],
    ['loop', 'unreachable'],
    ['missing', 'unreachable'],
    ['huge', 'tooLarge'],
  ] as const)
    await t.rejects(find(path), { code }, path);
});

t.test('regression: a directory without a release is named in the error', async (t) => {
  const { context } = worldOf(t);
  await t.rejects(findRelease(releaseAddress('/nowhere'), '/nonexistent', context.signal), {
    code: 'unreachable',
    message: 'There is no file /nowhere/SHA256SUMS.',
  });
});

t.test('only https addresses without credentials, and directories, are accepted', (t) => {
  t.equal(releaseAddress('https://example.com/a').href, 'https://example.com/a/');
  t.equal(releaseAddress('/a b/c#d').href, `${pathToFileURL('/a b/c#d').href}/`);
  for (const text of ['http://example.com/', 'ftp://example.com/', 'a', '', 'https://user:word@example.com/'])
    t.throws(() => releaseAddress(text), { code: 'usage' }, text);
  t.end();
});

t.test('for an installation by another program, the error names its update command', (t) => {
  const updateOf = (root: string) => {
    const found = installationAt(root);
    return found.kind === 'foreign' ? found.update : found.kind;
  };
  t.equal(updateOf('/usr/local/lib/node_modules/oratorio'), 'npm install -g oratorio@latest');
  t.equal(updateOf('/opt/homebrew/Cellar/oratorio/0.1.0/libexec'), 'brew upgrade oratorio');
  t.match(updateOf('/usr/lib/oratorio'), /apt install/);
  t.match(updateOf('/opt/oratorio-0.1.0-linux-x64'), 'sh /opt/oratorio-0.1.0-linux-x64/install.sh');
  const { installation } = worldOf(t);
  writeFileSync(join(installation.base, 'source'), 'https://example.com/oratorio\n');
  t.match(installationAt(join(installation.base, 'versions', '0.1.0')), {
    kind: 'own',
    source: 'https://example.com/oratorio',
  });
  t.end();
});

t.test('versions are ordered by Semantic Versioning', (t) => {
  const order = [
    '0.9.9',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
    '1.0.0',
    '1.0.10',
  ];
  for (const [index, version] of order.entries())
    for (const [place, other] of order.entries())
      t.equal(Math.sign(compareVersions(version, other)), Math.sign(index - place), `${version} ${other}`);
  t.end();
});
