import t from 'tap';
import { catalogue } from '../../machines/index.ts';
import { configDocument } from '../../scripts/config-docs.ts';
import { hubApiDocument } from '../../scripts/hub-api-docs.ts';
import { headerOf, machineDocuments } from '../../scripts/machine-docs.ts';
import { hubRoutes } from '../../src/hub/route-table.ts';
import { graphOf } from '../../src/inspect/graph.ts';
import { hubErrors, hubEventKinds } from '../../src/protocol/index.ts';

t.test('the header of a machine is parsed into its summary and numbered operation', async (t) => {
  const source =
    '/**\n * What it\n * is.\n *\n * Detailed operation\n * 1. First\n *    goes on.\n * 2. Second.\n */\ncode();\n';
  t.same(headerOf(source), { summary: 'What it is.', operation: ['First goes on.', 'Second.'] });
  t.same(headerOf('/**\n * Alone.\n */\n'), { summary: 'Alone.', operation: [] });
  t.throws(() => headerOf('code();'), /does not begin with a comment/);
});

/** The text between the fences of the one diagram. */
function diagramOf(document: string): string[] {
  const text = /```mermaid\n([\s\S]*?)\n```/.exec(document)?.[1] ?? '';
  return text.split('\n').map((line) => line.trim());
}

const documents = machineDocuments();

for (const [name, machine] of Object.entries(catalogue)) {
  const document = documents.get(`docs/machines/${name}.md`) ?? '';

  t.test(`${name}: Mermaid parses its diagram`, async (t) => {
    const [first, ...lines] = diagramOf(document);
    t.equal(first, 'stateDiagram-v2');
    const declared = new Set<string>();
    let depth = 0;
    let inNote = false;
    for (const line of lines) {
      if (line.startsWith('note ')) inNote = true;
      if (line === 'end note') inNote = false;
      const state = /^state "[^"]+" as (\w+)( \{)?$/.exec(line);
      if (state?.[1]) declared.add(state[1]);
      if (line.endsWith('{')) depth += 1;
      if (line === '}') depth -= 1;
      t.ok(depth >= 0);
      if (inNote || line === 'end note' || line === '}' || state) continue;
      const known =
        /^(\[\*\]|s_\w+) --> (\[\*\]|s_\w+)( : [^:;{}"<>]*(#\d+;[^:;{}"<>]*)*)?$/.test(line) ||
        /^s_\w+ : .+$/.test(line) ||
        // Between the regions of a parallel state.
        line === '--';
      t.ok(known, line);
    }
    t.equal(depth, 0, 'braces are balanced');
    for (const [id] of lines.join('\n').matchAll(/\bs_\w+/g)) t.ok(declared.has(id), `${id} is declared`);
  });

  t.test(`${name}: its document names every state, transition and step of operation`, async (t) => {
    const { nodes, edges } = graphOf(name, machine);
    for (const { id, description } of nodes) {
      if (id !== '') t.match(document, `| \`${id}\` | ${description}`, id);
    }
    for (const { event, actions } of edges)
      t.match(document, new RegExp(`\`${event.replace(/[().*]/g, '\\$&')}\``), actions.join());
    if (name === 'agent-server') t.match(document, '## Detailed operation\n\n1. `ENSURE` leads from rest');
    t.notMatch(document, /undefined|\[object/);
  });
}

/** The matrix of a machine's document: the lines between its fences. */
function matrixLines(document: string): string[] {
  return (/```text\n([\s\S]*?)\n```/.exec(document)?.[1] ?? '').split('\n');
}

for (const [name, machine] of Object.entries(catalogue)) {
  const lines = matrixLines(documents.get(`docs/machines/${name}.md`) ?? '');

  t.test(`${name}: its matrix has every state and event and fits on a screen`, async (t) => {
    const { nodes, edges } = graphOf(name, machine);
    const text = lines.join('\n');
    const parents = new Set(nodes.map(({ parent }) => parent));
    const leaves = nodes.filter(({ id }) => !parents.has(id));
    for (const [index, { id }] of leaves.entries()) {
      t.match(lines[index + 1], new RegExp(`^ *${index + 1} {1,2}${id.replaceAll('.', '\\.')}( |$)`), id);
    }
    const columns = new Set(edges.map(({ event }) => event.replace(/^(done|error|after)\(.*$/, '$1')));
    for (const column of columns)
      t.match(text, new RegExp(`(^|   )[A-Z] ${column.replaceAll('.', '\\.')}(   |$)`, 'm'), column);
    t.ok(lines.length <= 40, `${lines.length} lines`);
    for (const line of lines) t.ok(line.length <= 128, line);
  });
}

t.test('the index links to every machine', async (t) => {
  for (const name of Object.keys(catalogue)) t.match(documents.get('docs/machines/README.md'), `(${name}.md)`);
});

t.test('the Hub API document has every route, error and event, and its links resolve', async (t) => {
  const document = hubApiDocument();
  for (const { method, path } of Object.values(hubRoutes)) t.match(document, `\n### ${method} ${path}\n`);
  for (const [code, { status }] of Object.entries(hubErrors)) {
    t.match(document, code === 'workspaceNotFound' ? `| \`${code}\` | 400 or 404 |` : `| \`${code}\` | ${status} |`);
  }
  for (const [kind, { meaning }] of Object.entries(hubEventKinds)) t.match(document, `### ${kind}\n\n${meaning}\n`);
  const anchors = new Set(
    [...document.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^a-z0-9_ -]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
  for (const [, anchor = ''] of document.matchAll(/\]\(#([^)]+)\)/g)) t.ok(anchors.has(anchor), anchor);
  t.notMatch(document, /undefined|\[object/);
});

t.test('the page of settings has the fields of settings by name', async (t) => {
  const text = await configDocument();
  for (const path of ['Hosts.<name>.Ssh', 'Providers.<name>.EndPoint', 'Container.AllowRoot'])
    t.match(text, `| \`${path}\` |`);
});

t.test('two generations of the documents are equal', async (t) => {
  t.same([...machineDocuments()], [...machineDocuments()]);
  t.equal(hubApiDocument(), hubApiDocument());
});
