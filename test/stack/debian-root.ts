/**
 * Program that makes a root file system of packages, in a mount namespace of its own: `debian-root.ts DIRECTORY ARCHIVE PACKAGE…`
 * writes it to the tar ARCHIVE; DIRECTORY is empty and stays so. As debootstrap does, but with each package unpacked once, and
 * in memory.
 */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { must } from '../deploy/must.ts';

const [, , root = '', archive = '', ...packages] = process.argv;
const stepMs = 300_000;
const database = join(root, 'var/lib/dpkg');
const controls = join(root, 'controls');

/** Directories of `/usr/share` that `-slim` images have without files. Of `doc`, licences stay. */
const unread = ['info', 'lintian', 'locale', 'man'];

/** Unpacks every package in turn. @returns names of the files of each, as dpkg lists them */
async function unpack(): Promise<string[][]> {
  const directories = ['bin', 'sbin', 'lib', ...(process.arch === 'x64' ? ['lib64'] : [])];
  for (const name of directories) {
    mkdirSync(join(root, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  const script = `for each; do dpkg-deb --fsys-tarfile "$each"; done |
    tar -xivpf - -C "$0" --keep-directory-symlink --quoting-style=literal`;
  const names = await must('bash', ['-e', '-o', 'pipefail', '-c', script, root, ...packages], { timeoutMs: stepMs });
  // The first of each is its root.
  const lists = names.split(/^\.\/$/m).map((list) => list.split('\n').filter(Boolean));
  if (lists.length !== packages.length + 1 || lists[0]?.length !== 0)
    throw new Error('tar has other packages than dpkg-deb');
  return lists.slice(1).map((list) => ['/.', ...list.map((name) => name.replace(/^\.|\/$/g, ''))]);
}

/** Writes the records of dpkg for packages that are unpacked and not configured. */
async function register(files: readonly string[][]): Promise<void> {
  mkdirSync(join(database, 'info'), { recursive: true });
  writeFileSync(join(database, 'info/format'), '1\n');
  writeFileSync(join(database, 'available'), '');
  mkdirSync(controls);
  const script = 'for each; do dpkg-deb -e "$each" "$0/${each##*/}"; done';
  await must('bash', ['-e', '-c', script, controls, ...packages], { timeoutMs: stepMs });
  for (const [index, path] of packages.entries()) registerOne(join(controls, basename(path)), files[index] ?? []);
  rmSync(controls, { recursive: true });
}

function registerOne(directory: string, files: readonly string[]): void {
  const control = readFileSync(join(directory, 'control'), 'utf8');
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1];
  const name = field('Multi-Arch') === 'same' ? `${field('Package')}:${field('Architecture')}` : field('Package');
  for (const part of readdirSync(directory))
    if (part !== 'control') renameSync(join(directory, part), join(database, 'info', `${name}.${part}`));
  writeFileSync(join(database, 'info', `${name}.list`), `${files.join('\n')}\n`);
  const settings = conffilesOf(join(database, 'info', `${name}.conffiles`));
  const fields = [
    control.trimEnd(),
    'Status: install ok unpacked',
    ...(settings.length > 0 ? ['Conffiles:', ...settings] : []),
  ];
  appendFileSync(join(database, 'status'), `${fields.join('\n')}\n\n`);
}

function conffilesOf(list: string): string[] {
  if (!existsSync(list)) return [];
  const paths = readFileSync(list, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('/'));
  const sum = (path: string) => createHash('md5').update(readFileSync(join(root, path)));
  return paths.map((path) => ` ${path} ${sum(path).digest('hex')}`);
}

/** Runs the packages' own scripts. */
async function configure(): Promise<void> {
  await must('mknod', ['-m', '666', join(root, 'dev/null'), 'c', '1', '3'], { timeoutMs: stepMs });
  const env = {
    PATH: '/usr/sbin:/usr/bin',
    HOME: '/root',
    TMPDIR: '/tmp',
    LC_ALL: 'C.UTF-8',
    DEBIAN_FRONTEND: 'noninteractive',
  };
  const dpkg = (...words: string[]) =>
    must('chroot', [root, 'dpkg', '--configure', ...words], { timeoutMs: stepMs, env: { ...process.env, ...env } });
  // The scripts of all others expect root among the users.
  await dpkg('--force-depends', 'base-passwd');
  await dpkg('-a');
}

await must('mount', ['-t', 'tmpfs', 'tmpfs', root], { timeoutMs: stepMs });
await register(await unpack());
await configure();
const documents = [join(root, 'usr/share/doc'), '!', '-name', 'copyright', '!', '-type', 'd', '-delete'];
await must('find', documents, { timeoutMs: stepMs });
const left = [...unread.map((name) => `usr/share/${name}`), 'var/cache/apt/archives', 'var/log', 'dev'];
await must('tar', ['-cf', archive, '-C', root, ...left.map((path) => `--exclude=./${path}/*`), '.'], {
  timeoutMs: stepMs,
});
