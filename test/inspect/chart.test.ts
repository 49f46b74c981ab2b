import t, { type Test } from 'tap';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import { chartOf } from '../../src/inspect/index.ts';
import type { Chart, ChartNode } from '../../src/protocol/inspection.ts';
import { doorMachine } from './helpers.ts';

const machines: Record<string, AnyStateMachine> = { ...catalogue, door: doorMachine };

/** Walks the machine in its own way, so that the drawing is compared with something else than itself. */
function statesOf(machine: AnyStateMachine): AnyStateNode[] {
  return [machine.root, ...below(machine.root)];
}
function below(node: AnyStateNode): AnyStateNode[] {
  return Object.values(node.states).flatMap((child) => [child, ...below(child)]);
}
const pathOf = (node: AnyStateNode): string => node.path.join('.');

type Box = Pick<ChartNode, 'x' | 'y' | 'width' | 'height'>;
const contains = (outer: Box, inner: Box): boolean =>
  inner.x >= outer.x - 0.5 &&
  inner.y >= outer.y - 0.5 &&
  inner.x + inner.width <= outer.x + outer.width + 0.5 &&
  inner.y + inner.height <= outer.y + outer.height + 0.5;
const overlap = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width - 0.5 && b.x < a.x + a.width - 0.5 && a.y < b.y + b.height - 0.5 && b.y < a.y + a.height - 0.5;

const isOnBorder = (box: Box, { x, y }: { x: number; y: number }): boolean => {
  const grown = { x: box.x - 1, y: box.y - 1, width: box.width + 2, height: box.height + 2 };
  const inside = { x: box.x + 1, y: box.y + 1, width: box.width - 2, height: box.height - 2 };
  const point = { x, y, width: 0, height: 0 };
  return (
    contains(grown, point) &&
    !(x > inside.x && x < inside.x + inside.width && y > inside.y && y < inside.y + inside.height)
  );
};

for (const [name, machine] of Object.entries(machines)) {
  t.test(`chart of ${name}`, async (t) => {
    const chart = await chartOf(name, machine);
    const byId = new Map(chart.nodes.map((node) => [node.id, node]));

    t.same(chart.nodes.map((node) => node.id).sort(), statesOf(machine).map(pathOf).sort(), 'every state is drawn');
    for (const state of below(machine.root)) {
      const node = byId.get(pathOf(state));
      t.equal(node?.parent, state.parent ? pathOf(state.parent) : null);
      t.equal(node?.kind, state.type);
      t.equal(node?.description, state.description ?? '');
    }

    const wanted = statesOf(machine).flatMap((state) =>
      [...(state.always ?? []), ...[...state.transitions.values()].flat()].flatMap((transition) =>
        (transition.target ?? [state]).map((target) => `${pathOf(state)}>${pathOf(target)}`),
      ),
    );
    t.same(
      chart.edges.map((edge) => `${edge.source}>${edge.target}`).sort(),
      wanted.sort(),
      'every transition is drawn',
    );
    t.equal(new Set(chart.edges.map((edge) => edge.id)).size, chart.edges.length, 'edge ids are unique');
    t.notOk(
      chart.edges.some((edge) => edge.event.includes('xstate.') || edge.label.includes('inline')),
      'events and guards are readable',
    );

    checkBoxes(t, chart, byId);
    checkLines(t, chart, byId);
  });
}

function checkBoxes(t: Test, chart: Chart, byId: ReadonlyMap<string, ChartNode>): void {
  for (const node of chart.nodes) {
    t.ok(contains({ x: 0, y: 0, width: chart.width, height: chart.height }, node), `${node.id} is on the page`);
    const parent = node.parent === null ? undefined : byId.get(node.parent);
    if (parent) t.ok(contains(parent, node), `${node.id} is inside its parent`);
    for (const other of chart.nodes) {
      if (other.id <= node.id || other.parent !== node.parent) continue;
      t.notOk(overlap(node, other), `${node.id} and ${other.id} do not overlap`);
    }
  }
}

function checkLines(t: Test, chart: Chart, byId: ReadonlyMap<string, ChartNode>): void {
  for (const edge of chart.edges) {
    const source = byId.get(edge.source);
    const target = byId.get(edge.target);
    if (!source || !target) throw new Error(`edge ${edge.id} hangs in the air`);
    const [first] = edge.points;
    const last = edge.points.at(-1);
    if (!first || !last) {
      const at = { ...edge.labelAt, width: 0, height: 0 };
      t.ok(contains(source, at), `internal ${edge.id} is written in its state`);
      continue;
    }
    t.ok(isOnBorder(source, first), `${edge.id} begins at ${edge.source}`);
    t.ok(isOnBorder(target, last), `${edge.id} ends at ${edge.target}`);
    for (const [index, point] of edge.points.slice(1).entries()) {
      const before = edge.points[index] ?? point;
      t.ok(Math.abs(before.x - point.x) < 1 || Math.abs(before.y - point.y) < 1, `${edge.id} runs square`);
    }
  }
}
