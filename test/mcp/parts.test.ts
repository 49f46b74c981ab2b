import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { closureOf } from '../../scripts/architecture-docs.ts';
import { importsOf } from '../../scripts/check-imports.ts';
import { root } from '../../scripts/toolchain.mjs';
import { TextTail } from '../../src/lib/index.ts';
import { toToolResult } from '../../src/mcp/result.ts';
import { ToolNames } from '../../src/mcp/tool-names.ts';
import { pictures, pictureUrl } from '../pictures.ts';

const asIs = (text: string) => text;

t.test('tool names are valid for models, unique and stable', async (t) => {
  const names = new ToolNames();
  t.equal(names.nameOf('files', 'read_file'), 'mcp__files__read_file');
  t.match(names.nameOf('files', 'read.file'), /^mcp__files__read_file_[0-9a-f]{8}$/, 'the plain name is taken');
  t.equal(names.nameOf('files', 'other.file'), 'mcp__files__other_file');
  t.match(names.nameOf('files', 'long'.repeat(20)), /^mcp__files__(long)+lo?_[0-9a-f]{8}$|^.{64}$/);
  const pair = fc.tuple(fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/), fc.string({ minLength: 1, maxLength: 100 }));
  const key = ([server, tool]: [string, string]) => `${server}\0${tool}`;
  fc.assert(
    fc.property(fc.uniqueArray(pair, { selector: key, maxLength: 50 }), (pairs) => {
      const [one, two] = [new ToolNames(), new ToolNames()];
      const made = pairs.map(([server, tool]) => one.nameOf(server, tool));
      const again = pairs.map(([server, tool]) => two.nameOf(server, tool));
      return (
        made.every((name) => /^mcp__[a-zA-Z0-9_-]{1,59}$/.test(name)) &&
        new Set(made).size === made.length &&
        made.join() === again.join()
      );
    }),
  );
});

t.test('the end of a stream of text is retained, without control characters and within its limit', async (t) => {
  const tail = new TextTail(100);
  for (let line = 0; line < 10_000; line++) tail.write(Buffer.from(`line ${line} é\n`));
  t.match(tail.read(1_000), /line 9998 é\nline 9999 é$/);
  t.ok(Buffer.byteLength(tail.read(1_000)) <= 110);
  t.equal(tail.read(15), 'line 9999 é');
  const one = new TextTail(10);
  one.write(Buffer.from(`${'x'.repeat(1_000)}\u001b[31mend\u001b[0m\u0007`));
  t.match(one.read(100), /end$/);
});

t.test('every kind of content is converted to text and images', async (t) => {
  const result = toToolResult(
    {
      content: [
        { type: 'text', text: 'first' },
        { type: 'image', data: pictures.jpeg.toString('base64'), mimeType: 'image/png' },
        { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
        { type: 'resource_link', uri: 'file:///a', name: 'a', mimeType: 'text/plain', description: 'the a' },
        { type: 'resource', resource: { uri: 'file:///b', text: 'inside b' } },
        {
          type: 'resource',
          resource: { uri: 'file:///c', blob: pictures.gif.toString('base64'), mimeType: 'image/gif' },
        },
        { type: 'resource', resource: { uri: 'file:///d', blob: 'AAAA' } },
      ],
      structuredContent: { not: 'needed' },
    },
    asIs,
  );
  t.same(result, {
    text: [
      'first',
      '[audio, audio/wav, 3 bytes: cannot be played to you]',
      '[resource file:///a, text/plain: the a]',
      '[resource file:///b]\ninside b',
      '[resource file:///d, application/octet-stream, 3 bytes of binary data: not shown]',
    ].join('\n'),
    isError: false,
    images: [
      { type: 'image', url: pictureUrl(pictures.jpeg, 'jpeg') },
      { type: 'image', url: pictureUrl(pictures.gif, 'gif') },
    ],
  });
  t.same(toToolResult({ content: [], isError: true }, asIs), {
    text: '(The tool answered with nothing.)',
    isError: true,
  });
  const image = { type: 'image' as const, data: pictures.png.toString('base64'), mimeType: 'image/png' };
  const many = toToolResult({ content: Array.from({ length: 10 }, () => image) }, asIs);
  t.equal(many.images?.length, 8);
  t.match(many.text, /left out, the result has too many or too large images/);
});

t.test('without a log-in, its code and the library of the protocol are not loaded', async (t) => {
  const loadedAtOnce = (entry: string) => [...closureOf([entry], () => false)];
  const ofLogin = ['login', 'logout', 'client', 'authorization-server', 'redirect'].map(
    (name) => `src/mcp/oauth/${name}.ts`,
  );
  const withServers = loadedAtOnce('src/mcp/index.ts');
  t.ok(withServers.includes('src/mcp/server.ts'));
  t.same(
    ofLogin.filter((file) => withServers.includes(file)),
    [],
    'a user with servers',
  );
  for (const entry of ['src/appserver/main.ts', 'src/hub/main.ts', 'src/cli/main.ts']) {
    const without = loadedAtOnce(entry).filter((file) => file.startsWith('src/mcp/'));
    t.same(without, [], `a user without servers: ${entry}`);
  }
  t.ok(loadedAtOnce('src/mcp/oauth/login.ts').includes('src/mcp/oauth/redirect.ts'), 'positive control');
  const importers = withServers.filter((file) =>
    importsOf(file, readFileSync(join(root, file), 'utf8')).some(
      ({ specifier, isType, isDynamic }) => specifier === '@modelcontextprotocol/client' && !isType && !isDynamic,
    ),
  );
  t.same(importers, [], 'the library is loaded with the first server that starts');
});
