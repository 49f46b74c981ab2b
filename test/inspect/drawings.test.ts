import t from 'tap';
import { catalogue } from '../../machines/index.ts';
import { machinePictures } from '../../scripts/machine-docs.ts';
import { chartOf, graphOf, loadCharts, mermaidOf, statesTableOf, svgOf, tableOf } from '../../src/inspect/index.ts';
import { doorMachine } from './helpers.ts';

const graph = graphOf('door', doorMachine);

t.test(
  'a Mermaid text declares every state once, has arrows between declared states only, and balanced braces',
  async (t) => {
    for (const [name, machine] of [...Object.entries(catalogue), ['door', doorMachine] as const]) {
      const each = graphOf(name, machine);
      const text = mermaidOf(each);
      const lines = text.split('\n').map((line) => line.trim());
      t.equal(lines[0], 'stateDiagram-v2');
      const declared = lines.flatMap((line) => /^state ".*" as (\w+)/.exec(line)?.[1] ?? []);
      t.equal(declared.length, each.nodes.length - 1);
      t.equal(new Set(declared).size, declared.length);
      const arrows = lines.flatMap((line) => {
        const [, from = '', to = ''] = /^(\w+|\[\*\]) --> (\w+|\[\*\])/.exec(line) ?? [];
        return from === '' ? [] : [from, to];
      });
      t.ok(
        arrows.every((end) => end === '[*]' || declared.includes(end)),
        name,
      );
      t.equal(text.split('{').length, text.split('}').length);
    }
    t.match(mermaidOf(graph), 's_shut --> s_ajar : OPEN [isPatient]');
    t.match(mermaidOf(graph), /^\s+--$/m, 'regions of a parallel state are divided');
    t.match(mermaidOf(graph), 's_open --> s_shut : after(patience)');
    t.match(mermaidOf(graph), 's_broken --> [*]');
  },
);

t.test('the table has a row per transition', async (t) => {
  const rows = tableOf(graph).trimEnd().split('\n');
  t.equal(rows.length, graph.edges.length + 2);
  t.match(rows, [/From/, /---/, '| `(door)` | `BLINK` |  | – | `blink` |']);
  t.ok(rows.includes('| `shut` | `OPEN` | `isPatient` | `ajar` | `keepSecret`, `squeak` |'));
  t.match(statesTableOf(graph), '| `open.bolt.out` | Out. | runs `check` |');
});

t.test('the SVG is stand-alone, without script, with active states marked and text escaped', async (t) => {
  const svg = svgOf(await chartOf('door', doorMachine), { active: ['shut'] });
  t.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  t.equal(svg.match(/ active"/g)?.length, 1);
  t.notMatch(svg, /<script|href=|url\((?!#)/);
  const [, dark = ''] = svg.split('prefers-color-scheme: dark');
  t.match(dark, /\.parallel > \.box \{ fill: #/, 'in the dark a parallel state is a frame, not a box');
  t.match(dark, /\.root > \.box \{ fill: none/, 'in the dark the machine has no fill, as in the light');
  const odd = { ...(await chartOf('door', doorMachine)), name: '<&">' };
  t.match(svgOf(odd), '&lt;&amp;&quot;&gt;');
});

t.test(
  'the documents show every machine with all its states and a line for each pair that a transition joins',
  async (t) => {
    const pictures = await machinePictures();
    for (const [name, machine] of Object.entries(catalogue)) {
      const svg = pictures.get(`docs/machines/${name}.svg`) ?? '';
      const { nodes, edges } = graphOf(name, machine);
      const named = [...svg.matchAll(/<text class="name"[^>]*>([^<]*)</g)].map(([, label]) => label);
      const states = nodes.filter(({ parent }) => parent !== null).map(({ label }) => label);
      t.same(named.toSorted(), states.toSorted(), name);
      const pairs = new Set(
        edges.filter(({ internal }) => !internal).map(({ source, target }) => `${source}→${target}`),
      );
      t.equal(svg.match(/<path class="edge/g)?.length, pairs.size, name);
      t.notMatch(svg, /NaN|undefined/);
    }
  },
);

t.test('loadCharts reads the charts of the build, or reports the command that draws them', async (t) => {
  try {
    const charts = await loadCharts();
    t.same(
      charts.map((chart) => chart.name),
      Object.keys(catalogue),
    );
  } catch (error) {
    t.match(error, { message: /npm run build/ });
  }
});
