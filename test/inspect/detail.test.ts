/** Drawings around a focus: which states are open, which arrows are drawn, and that the drawings kept are of this version. */
import t from 'tap';
import { catalogue, machineWords, stackChangeMachine } from '../../machines/index.ts';
import { currentDrawings, staleDrawings } from '../../scripts/drawings.ts';
import { detailOf, leafOf, leavesOfGraph, levels, pathTo } from '../../src/inspect/detail.ts';
import { decodeWhole, encodeWhole } from '../../src/inspect/encode.ts';
import { fingerprintOf } from '../../src/inspect/fingerprint.ts';
import { graphOf } from '../../src/inspect/graph.ts';
import { legible, panes } from '../../src/inspect/picture.ts';
import { picturesOf } from '../../src/inspect/plan.ts';
import { noWords } from '../../src/inspect/words.ts';
import { chartNamed } from './built-charts.ts';
import { doorMachine } from './helpers.ts';

const graphs = Object.entries(catalogue).map(([name, machine]) => graphOf(name, machine));

t.test('the drawings kept are of these machines and this drawing code', async (t) => {
  t.same(staleDrawings(), { machines: [], strays: [] }, 'run "npm run docs"');
});

t.test('a composite state is open when the focus is in it, else one box with its number of states', async (t) => {
  const graph = graphOf('door', doorMachine);
  const shut = detailOf(graph, noWords, 'shut', 0);
  t.same(
    shut.nodes.map(({ id, isOpen, under }) => [id, isOpen, under]),
    [
      ['shut', false, ''],
      ['ajar', false, ''],
      ['open', false, '▸ 2 states'],
      ['broken', false, ''],
    ],
  );
  const dry = detailOf(graph, noWords, 'open.hinge.dry', 0);
  t.same(
    dry.nodes.filter(({ isOpen }) => isOpen).map(({ id }) => id),
    ['open', 'open.hinge'],
  );
  t.ok(dry.nodes.some(({ id, under }) => id === 'open.bolt' && under === '▸ 2 states'));
});

t.test('arrows are lifted to the nearest state that is drawn; words are only on those that can be taken', async (t) => {
  const { edges } = detailOf(graphOf('door', doorMachine), noWords, 'shut', 0);
  t.same(
    edges.map(({ id, isPossible, lines }) => [id, isPossible, lines.map(({ text }) => text)]),
    [
      ['shut→ajar', true, ['OPEN', 'if isPatient', '→ keepSecret; squeak']],
      ['ajar→open', false, []],
      ['open→shut', false, []],
      ['open→open', false, []],
    ],
  );
});

t.test('a level shows no more than the one before, and never less than the active path', async (t) => {
  for (const graph of graphs) {
    for (const leaf of leavesOfGraph(graph.nodes)) {
      const all = levels.map((level) => detailOf(graph, noWords, leaf, level));
      for (const [level, detail] of all.entries()) {
        const ids = detail.nodes.map(({ id }) => id);
        t.ok(
          pathTo(leaf).every((id) => ids.includes(id)),
          `${graph.name} ${leaf} ${level}`,
        );
        t.ok(detail.edges.length <= (all[level - 1] ?? detail).edges.length);
        t.ok(
          detail.edges.every(({ source, target }) => ids.includes(source) && ids.includes(target)),
          'no arrow hangs in the air',
        );
      }
      t.equal(all.at(-1)?.edges.length, 0, 'names only');
    }
  }
});

t.test('a focus on a composite state leads to its initial state', async (t) => {
  const graph = graphOf('agent-server', catalogue['agent-server'] ?? stackChangeMachine);
  t.equal(leafOf(graph.nodes, 'starting.aborting'), 'starting.aborting.killing');
  t.equal(leafOf(graph.nodes, 'running'), 'running');
});

t.test('every drawing kept has a box for each state and a line for each arrow, legible in its pane', async (t) => {
  for (const graph of graphs) {
    const drawings = currentDrawings(graph.name, catalogue[graph.name] ?? stackChangeMachine);
    if (!drawings) throw new Error(`${graph.name} is not drawn`);
    t.same(Object.keys(drawings.pictures), leavesOfGraph(graph.nodes), graph.name);
    t.equal(
      drawings.fingerprint,
      fingerprintOf(await chartNamed(graph.name, catalogue[graph.name] ?? stackChangeMachine)),
    );
    for (const [leaf, pictures] of Object.entries(drawings.pictures)) {
      for (const pane of ['desktop', 'phone'] as const) {
        const { level, width, height, boxes, arrows } = pictures[pane];
        const { nodes, edges } = detailOf(graph, drawings.words, leaf, level, pane);
        const scale = Math.min(panes[pane].width / width, panes[pane].height / height);
        t.ok(level === 8 || scale * 12 >= legible, `${graph.name} ${leaf} ${pane}: ${(scale * 12).toFixed(1)} px`);
        const beside = graph.nodes.filter(({ parent }) => parent === '').length;
        if (pane === 'desktop') t.ok(nodes.length >= beside, 'every outer state is drawn');
        t.same([boxes.length, arrows.length], [4 * nodes.length, edges.length]);
        t.ok(arrows.every((numbers) => numbers.length >= 6 && numbers.length % 2 === 0));
      }
    }
  }
});

t.test('drawings kept equal a fresh layout', async (t) => {
  const graph = graphOf('stack-change', stackChangeMachine);
  const kept = currentDrawings('stack-change', stackChangeMachine);
  t.same(await picturesOf(graph, machineWords['stack-change']), kept?.pictures);
  if (!kept) throw new Error('not drawn');
  t.same(encodeWhole(graph, decodeWhole(graph, kept.whole)), kept.whole);
});
