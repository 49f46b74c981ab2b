import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { openFile } from '../../../src/agent/tools/files/handles.ts';
import { createReadFile } from '../../../src/agent/tools/files/index.ts';
import { LineReader } from '../../../src/agent/tools/files/line-window.ts';
import { pictures } from '../../pictures.ts';
import { places, resultText, review, settings } from './file-tools.ts';
import { contextOf, problemOf } from './run-tool.ts';

const read = createReadFile(settings());
const onPosix = { skip: process.platform === 'win32' && 'symlinks and their like are those of POSIX' };
const numbered = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}`);

t.test('text is shown unchanged', async (t) => {
  const { workspace, put } = places(t);
  for (const content of ['one', 'one\n\n  two\t \nthree', 'ünï 🎼 code\n\tx']) {
    put('f', content);
    t.equal(await resultText(read, { path: 'f' }, workspace), content);
  }
  put('f', 'last line ends\n');
  t.equal(await resultText(read, { path: 'f' }, workspace), 'last line ends');
});

t.test('of a long file the first lines are shown, with the offset to continue at', async (t) => {
  const { workspace } = places(t, { f: `${numbered(1, 4_500).join('\n')}\n` });
  const first = await resultText(read, { path: 'f' }, workspace);
  t.ok(first.startsWith('line 1\nline 2\n'));
  t.ok(first.endsWith('line 2000\n\n[Showing lines 1-2000 of 4500. Use offset=2001 to continue.]'));
  const second = await resultText(read, { path: 'f', offset: 4_001, limit: 9_999 }, workspace);
  t.equal(second, `${numbered(4_001, 4_500).join('\n')}\n\n[Showing lines 4001-4500 of 4500.]`);
  t.equal(
    await resultText(read, { path: 'f', offset: '10', limit: '2' }, workspace),
    'line 10\nline 11\n\n[Showing lines 10-11 of 4500. Use offset=12 to continue.]',
  );
  const { result } = await review(read, { path: 'f', offset: 4_501 }, workspace);
  t.match(result, { isError: true, text: 'Error: f has 4500 lines; offset 4501 is beyond the last.' });
  t.match(problemOf(read, { path: 'f', offset: 0 }), /offset must be a whole number from 1/);
});

t.test('50 KB come before 2000 lines', async (t) => {
  const { workspace } = places(t, { f: `${'x'.repeat(1_023)}\n`.repeat(100) });
  const text = await resultText(read, { path: 'f' }, workspace);
  t.match(text, /\[Showing lines 1-50 of 100\. Use offset=51 to continue\.\]$/);
});

t.test('a long line is cut, and the rest is counted', async (t) => {
  const { workspace, put } = places(t, { f: `${'x'.repeat(5_000)}\nshort\n` });
  t.equal(
    await resultText(read, { path: 'f' }, workspace),
    `${'x'.repeat(2_000)}… [3000 more characters]\nshort\n\n[A line is cut at 2000 characters.]`,
  );
  put('f', `${'x'.repeat(1_999)}🎼${'y'.repeat(10)}`);
  t.match(await resultText(read, { path: 'f' }, workspace), /^x{1999}… \[12 more characters\]/, 'no half character');
});

t.test('BOM, UTF-16, CR LF and bytes that are not UTF-8 are decoded', async (t) => {
  const { workspace, put } = places(t);
  const little = Buffer.from('\uFEFFgrüße\r\nzwei', 'utf16le');
  put('bom', '\uFEFFgrüße');
  put('utf16le', little);
  put('utf16be', Buffer.from(little).swap16());
  put('crlf', 'one\r\ntwo\r\n');
  put('latin1', Buffer.from('gr\xfc\xdfe', 'latin1'));
  t.equal(await resultText(read, { path: 'bom' }, workspace), 'grüße');
  t.equal(await resultText(read, { path: 'utf16le' }, workspace), 'grüße\nzwei');
  t.equal(await resultText(read, { path: 'utf16be' }, workspace), 'grüße\nzwei');
  t.equal(await resultText(read, { path: 'crlf' }, workspace), 'one\ntwo');
  t.match(await resultText(read, { path: 'latin1' }, workspace), /^gr\uFFFD+e\n\n\[Some bytes are not valid text/);
});

t.test('characters that lie across two pieces of the file stay whole', async (t) => {
  const { workspace } = places(t, { f: `${'a'.repeat(1)}${'é'.repeat(600)}\n`.repeat(500) });
  const text = await resultText(read, { path: 'f', offset: 300, limit: 3 }, workspace);
  t.notMatch(text, /\uFFFD/);
  t.match(text, /Showing lines 300-302 of 500/);
});

t.test('an empty file and an empty directory say so', async (t) => {
  const { workspace, put, at } = places(t, { empty: '' });
  put('only-bom', '\uFEFF');
  mkdirSync(at('dir'));
  t.equal(await resultText(read, { path: 'empty' }, workspace), '[empty is empty.]');
  t.equal(await resultText(read, { path: 'only-bom' }, workspace), '[only-bom is empty.]');
  t.equal(await resultText(read, { path: 'dir' }, workspace), '[dir is an empty directory.]');
});

t.test('binary files are recognised and named', async (t) => {
  const { workspace, put } = places(t);
  for (const [content, label] of [
    [Buffer.from('\x7fELF\x02\x01\x01\0\0'), 'an ELF executable'],
    [Buffer.from('SQLite format 3\0'), 'an SQLite database'],
    [Buffer.concat([Buffer.from('%PDF-1.7\n%'), Buffer.from([0xe2, 0xe3])]), 'a PDF document'],
    [Buffer.from([0x1f, 0x8b, 8, 0, 1, 2]), 'gzip data'],
    [Buffer.from([1, 2, 3, 0]), 'unknown data'],
    [Buffer.from([0xff, 0xfe, 0, 0, 65, 0, 0, 0]), 'unknown data'],
  ] as const) {
    put('b', content);
    t.match(
      await resultText(read, { path: 'b' }, workspace),
      new RegExp(`^\\[b is a binary file \\(\\d+ bytes, probably ${label}\\)`),
    );
  }
});

t.test('images are shown as images', async (t) => {
  const { workspace, put } = places(t);
  const pixel = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  put('a.txt', pixel);
  const { result } = await review(read, { path: 'a.txt' }, workspace);
  t.strictSame(result, {
    text: '[a.txt: PNG image, 70 bytes.]',
    isError: false,
    images: [{ type: 'image', url: `data:image/png;base64,${pixel.toString('base64')}` }],
  });
  for (const type of ['jpeg', 'gif', 'webp'] as const) {
    put('i', pictures[type]);
    t.match((await review(read, { path: 'i' }, workspace)).result.images?.[0]?.url, new RegExp(`^data:image/${type};`));
  }
  for (const type of ['png', 'jpeg', 'gif', 'webp'] as const) {
    put('cut', pictures[type].subarray(0, 16));
    const { result: cut } = await review(read, { path: 'cut' }, workspace);
    t.match(cut, {
      isError: true,
      text: /^Error: cut is a \w+ image that cannot be shown: it is cut off or damaged\.$/,
    });
    t.equal(cut.images, undefined);
  }
  const large = createReadFile(settings({ maxFileBytes: 10_000_000 }));
  put('big.png', Buffer.concat([pixel, Buffer.alloc(5 * 1024 * 1024)]));
  t.match((await review(large, { path: 'big.png' }, workspace)).result, {
    isError: true,
    text: /PNG image of 5\.0 MB; at most 5\.0 MB/,
  });
});

t.test('a directory is listed, by pages', onPosix, async (t) => {
  const { workspace, at } = places(t, { 'd/b.txt': '', 'd/a/x': '' });
  symlinkSync('b.txt', at('d/link'));
  t.equal(await resultText(read, { path: 'd' }, workspace), 'd:\na/\nb.txt\nlink@');
  mkdirSync(at('many'));
  for (let n = 0; n < 501; n += 1) writeFileSync(at(`many/f${String(n).padStart(3, '0')}`), '');
  const first = await resultText(read, { path: 'many' }, workspace);
  t.match(first, /f499\n\n\[Showing entries 1-500 of 501\. Use offset=501 to continue\.\]$/);
  t.equal(
    await resultText(read, { path: 'many', offset: 501 }, workspace),
    'many:\nf500\n\n[Showing entries 501-501 of 501.]',
  );
  t.match(await resultText(read, { path: 'many', offset: 502 }, workspace), /offset 502 is beyond the last/);
  t.match(await resultText(read, { path: '.' }, workspace), /^\.:\n\.oratorio\/\nd\/\nmany\/$/);
});

t.test('a file that is too large, missing or not regular is an error with the reason', onPosix, async (t) => {
  const { workspace, put, at } = places(t, { f: '' });
  put('large', 'x'.repeat(1_048_577));
  execFileSync('mkfifo', [at('fifo')]);
  const server = createServer().listen(at('socket'));
  await new Promise((resolve) => server.once('listening', resolve));
  t.teardown(() => server.close());
  for (const [path, text] of [
    ['large', /large has 1\.0 MB, more than the 1\.0 MB that are read \(Tools\.File\.MaxFileBytes\)/],
    ['none', /none: there is no such file or directory/],
    ['f/child', /a part of the path is a file/],
    ['fifo', /a FIFO, not a regular file/],
    ['socket', /socket/],
  ] as const) {
    t.match((await review(read, { path }, workspace)).result, { isError: true, text }, path);
  }
});

t.test(
  'a file without permission is said',
  { skip: process.getuid?.() === 0 && 'root may read everything' },
  async (t) => {
    const { workspace, at } = places(t, { f: 'x' });
    chmodSync(at('f'), 0);
    t.match(await resultText(read, { path: 'f' }, workspace), /permission denied/);
  },
);

t.test('inside the workspace nothing needs approval, outside everything does', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { f: 'x' });
  writeFileSync(join(outside, 'o'), 'far');
  symlinkSync(join(outside, 'o'), at('link'));
  t.equal((await review(read, { path: 'f' }, workspace)).need, undefined);
  const need = { kind: 'file', operation: 'read', target: join(outside, 'o'), scopeKey: `read:${outside}/o` };
  for (const path of ['../outside/o', join(outside, 'o'), 'link']) {
    const reviewed = await review(read, { path }, workspace);
    t.match(reviewed.need, need, path);
    t.match(reviewed.result, { isError: false, text: 'far' });
  }
  t.match((await review(read, { path: outside }, workspace)).need, {
    operation: 'list',
    target: outside,
    scopeKey: `list:${outside}`,
  });
});

t.test('a path outside is refused without an approval, or with that of another place', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { 'd/o': 'near' });
  writeFileSync(join(outside, 'o'), 'far');
  const context = contextOf({ workspacePath: workspace });
  const unasked = await read.run({ path: join(outside, 'o'), offset: 1, limit: 9 }, context);
  t.match(unasked, { isError: true, text: /refused: .* outside the workspace and was not approved/ });

  const parsed = read.parse({ path: 'd/o' });
  if (!parsed.ok) throw new Error(parsed.error);
  t.equal(await read.approvalFor(parsed.args, context), undefined);
  rmSync(at('d'), { recursive: true });
  symlinkSync(outside, at('d'));
  t.match(await read.run(parsed.args, context), { isError: true, text: /refused: d\/o now leads elsewhere/ });
});

t.test('blocked and own files are refused without a question', async (t) => {
  const { workspace, outside, put } = places(t);
  put('.env', 'KEY=1');
  writeFileSync(join(outside, 'hub.lock'), 'token');
  const guarded = createReadFile(settings({ blockedPaths: ['.env'], protectedDirectories: [outside] }));
  for (const path of ['.env', '.oratorio/config.json', '../outside/hub.lock', '.oratorio']) {
    const { need, result } = await review(guarded, { path }, workspace);
    t.equal(need, undefined, path);
    t.match(result, { isError: true, text: /^Error: refused: / });
    t.notMatch(result.text, /KEY|token|sk-own/);
  }
  t.match(await resultText(guarded, { path: 'a\0b' }, workspace), /refused: The path contains a NUL/);
});

t.test('a file that was exchanged after its check is not opened', onPosix, async (t) => {
  const { outside, at } = places(t, { 'd/f': 'near', g: 'near' });
  writeFileSync(join(outside, 'f'), 'far');
  renameSync(at('d'), at('away'));
  symlinkSync(outside, at('d'));
  await t.rejects(openFile(at('d/f')), { code: 'moved' });
  rmSync(at('g'));
  symlinkSync(join(outside, 'f'), at('g'));
  await t.rejects(openFile(at('g')), { code: 'moved' });
});

t.test('an interrupted turn ends the reading', async (t) => {
  const { workspace } = places(t, { f: 'x' });
  await t.rejects(review(read, { path: 'f' }, workspace, { signal: AbortSignal.abort(new Error('over')) }), {
    message: 'over',
  });
});

t.test('a window of lines is that of the whole text, however it comes in pieces', async () => {
  const line = fc.stringMatching(/^[a-zé🎼\r ]{0,12}$/u);
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 12 }),
      fc.boolean(),
      fc.array(fc.nat(200)),
      fc.integer({ min: 1, max: 14 }),
      fc.integer({ min: 1, max: 14 }),
      (lines, endsInFeed, cuts, offset, limit) => {
        const text = lines.join('\n') + (endsInFeed ? '\n' : '');
        const reader = new LineReader({ offset, limit, maxBytes: 1e9, maxLineChars: 1e9 });
        let from = 0;
        for (const cut of [...cuts].sort((a, b) => a - b)) {
          reader.add(text.slice(from, Math.max(from, cut)));
          from = Math.max(from, cut);
        }
        reader.add(text.slice(from));
        const window = reader.finish();
        const all = text.split('\n');
        if (all.at(-1) === '') all.pop();
        const wanted = all.slice(offset - 1, offset - 1 + limit).map((each) => each.replace(/\r$/, ''));
        return window.total === all.length && JSON.stringify(window.lines) === JSON.stringify(wanted);
      },
    ),
  );
});
