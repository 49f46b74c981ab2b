/** Display of calls and parsing of prompts, for any text of a model or an editor. */
import fc from 'fast-check';
import t from 'tap';
import { inputOf } from '../../src/acp/prompt.ts';
import { showCall } from '../../src/acp/tool-calls.ts';

t.test('calls are shown with kind, title and location', (t) => {
  const show = (tool: string, args: unknown) => showCall(tool, JSON.stringify(args), '/ws');
  t.match(show('ReadFile', { file_path: 'a.ts', offset: 7 }), {
    kind: 'read',
    title: 'Read a.ts',
    locations: [{ path: '/ws/a.ts', line: 7 }],
  });
  t.match(show('WriteFile', { path: '/tmp/x', content: 'new' }), {
    kind: 'edit',
    locations: [{ path: '/tmp/x' }],
    content: [{ type: 'diff', path: '/tmp/x', oldText: null, newText: 'new' }],
  });
  t.match(show('EditFile', { filePath: 'b', old_string: 'x', new_string: 'y' }), {
    content: [{ path: '/ws/b', oldText: 'x', newText: 'y' }],
  });
  t.match(show('GrepFiles', { pattern: 'a+' }), { kind: 'search', title: 'Search for a+' });
  t.match(show('FindFiles', { pattern: '*.ts' }), { kind: 'search', title: 'Find *.ts' });
  t.match(show('Exec', { command: 'npm test\nnpm run x' }), { kind: 'execute', title: 'npm test' });
  t.match(show('WebFetch', { url: 'https://x.org' }), { kind: 'fetch', title: 'Fetch https://x.org' });
  t.match(show('WebSearch', { query: 'cats' }), { kind: 'search', title: 'Search the web for cats' });
  t.match(show('SpawnSubagent', { label: 'count' }), { kind: 'think', title: 'Sub-agent: count' });
  t.match(show('mcp_tool', { a: 1 }), { kind: 'other', title: 'mcp_tool', rawInput: { a: 1 } });
  t.strictSame(showCall('ReadFile', '{"path', '/ws').rawInput, '{"path', 'broken arguments are shown as they are');
  t.strictSame(show('WriteFile', { path: 'x', content: 'x'.repeat(200_000) }).content, [], 'too much to be shown');
  t.end();
});

t.test('any arguments can be shown', (t) => {
  const tools = fc.constantFrom('ReadFile', 'WriteFile', 'EditFile', 'Exec', 'SpawnSubagent', 'other');
  fc.assert(
    fc.property(tools, fc.oneof(fc.string(), fc.json()), (tool, args) => {
      const { title, locations } = showCall(tool, args, '/ws');
      return title !== '' && !title.includes('\n') && locations.every(({ path }) => path.startsWith('/'));
    }),
  );
  t.end();
});

t.test('no text of a resource closes its fence', (t) => {
  fc.assert(
    fc.property(fc.stringMatching(/^[`a\n]{0,40}$/), (text) => {
      const [part] = inputOf([{ type: 'resource', resource: { uri: 'file:///x', text } }]);
      const words = part?.type === 'text' ? part.text : '';
      const [, fence = '', inner] = /^@\/x\n(`{3,})\n([\s\S]*)\n\1$/.exec(words) ?? [];
      return inner === text && !text.includes(fence);
    }),
  );
  t.end();
});
