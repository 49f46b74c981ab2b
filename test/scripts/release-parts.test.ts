/** Parts of a release that need no build: man page, formula, stripped programs, package digests. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { formula } from '../../scripts/release/formula.ts';
import { platformNotes } from '../../scripts/release/notes.ts';
import { verifyIntegrity } from '../../scripts/release/packages.ts';
import { platforms, tarballName } from '../../scripts/release/platforms.ts';
import { withoutSymbols } from '../../scripts/release/strip-elf.ts';
import { root } from '../../scripts/toolchain.mjs';
import { commands } from '../../src/cli/commands.ts';
import { manPage } from '../../src/cli/man.ts';

t.test('the man page has each command and option, and no text is read as a roff request', (t) => {
  const page = manPage('1.2.3');
  const requests = new Set([...page.matchAll(/^[.'](\S*)/gm)].map(([, name]) => name));
  t.strictSame([...requests].sort(), ['PP', 'SH', 'SS', 'TH', 'TP', 'fi', 'nf']);
  for (const { name, options } of commands) {
    t.match(page, `\n.SS ${name.replaceAll('-', '\\-')}\n`);
    for (const option of options) t.match(page, `\\-\\-${option.name.replaceAll('-', '\\-')}`);
  }
  t.notMatch(page, /[^\\]\\(?:[^&\-ef[]|f[^BIR])/, 'every backslash belongs to an intended escape');
  t.notMatch(page, /\P{ASCII}/u);
  t.end();
});

t.test('the formula names the tarball and checksum of each platform', (t) => {
  const tarballs = platforms.map((platform, index) => {
    return { platform, file: tarballName('1.2.3', platform), sha256: String(index).repeat(64) };
  });
  const text = formula({
    version: '1.2.3',
    description: 'A "supervisor" #{of} agents: more',
    homepage: 'https://example.com',
    license: 'Apache-2.0',
    address: 'https://example.com/v1.2.3',
    tarballs,
  });
  t.match(text, 'desc "\\"supervisor\\" \\#{of} agents"\n');
  for (const { file, sha256 } of tarballs)
    t.match(text, `url "https://example.com/v1.2.3/${file}"\n      sha256 "${sha256}"\n`);
  const opened = text.match(/^ *(?:class|def|test do|on_\w+ do)/gm)?.length;
  t.equal(text.match(/^ *end$/gm)?.length, opened, 'each block is closed');
  const linuxOnly = formula({
    version: '1.2.3',
    description: '',
    homepage: '',
    license: '',
    address: '',
    tarballs: [],
  });
  t.notMatch(linuxOnly, /on_macos|on_linux/);
  t.end();
});

t.test('a program without its symbols is smaller and runs', (t) => {
  const node = readFileSync(process.execPath);
  const stripped = withoutSymbols(node);
  const file = join(t.testdir(), 'node');
  writeFileSync(file, stripped);
  chmodSync(file, 0o755);
  t.match(spawnSync(file, ['-p', '6 * 7'], { encoding: 'utf8' }), { status: 0, stdout: '42\n' });
  t.ok(statSync(file).size <= node.length);
  if (process.platform === 'linux') t.strictSame(withoutSymbols(stripped), stripped);
  t.strictSame(withoutSymbols(Buffer.from('text')), Buffer.from('text'));
  t.end();
});

t.test('a package whose digest differs from the lock file is refused', (t) => {
  const file = join(t.testdir({ package: 'content' }), 'package');
  const digest = createHash('sha512').update('content').digest('base64');
  verifyIntegrity(file, `sha512-${digest}`);
  t.throws(() => verifyIntegrity(file, `sha512-${'A'.repeat(86)}==`), /does not have the digest/);
  t.throws(() => verifyIntegrity(file, 'sha1-AAAA'), /not a digest that this script accepts/);
  t.end();
});

t.test('the notes name the tarballs that were tried', (t) => {
  const [first, second] = platforms;
  if (!first || !second) throw new Error('there are platforms');
  const made = [first, second].map((platform) => ({ platform, file: 'f', packedBytes: 5e7, unpackedBytes: 14e7 }));
  const notes = platformNotes(made, (name) => name === first.name);
  t.match(notes, '| linux-x64 | `f` | 50 MB | 140 MB | installed and used |');
  t.match(notes, '| linux-arm64 | `f` | 50 MB | 140 MB | built, not tried |');
  t.end();
});

t.test('on Windows the command refers to WSL2 and exits', (t) => {
  const program = `Object.defineProperty(process, 'platform', { value: 'win32' }); require(${JSON.stringify(join(root, 'bin/oratorio.js'))})`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
  t.match(
    { status, stdout, stderr },
    { status: 7, stdout: '', stderr: /^✖ Oratorio does not run directly on Windows\.\n.*WSL2/ },
  );
  t.end();
});
