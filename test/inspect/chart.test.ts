/** The chart of each machine, in every form it has, is the machine: no state, no transition more or less, and readable. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { AnyStateMachine } from 'xstate';
import { catalogue, hubMachine, stackChangeMachine } from '../../machines/index.ts';
import { writeCharts } from '../../scripts/charts.ts';
import { chartOf, graphOf, mermaidOf, svgOf } from '../../src/inspect/index.ts';
import { boxLines, chartFont, linesSize } from '../../src/inspect/measure.ts';
import type { Chart, ChartEdge, ChartNode } from '../../src/protocol/inspection.ts';
import { chartNamed } from './built-charts.ts';
import { type WalkedTransition, walk } from './config-walk.ts';
import { doorMachine } from './helpers.ts';

const machines: Record<string, AnyStateMachine> = { ...catalogue, door: doorMachine };

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

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

const durations: Readonly<Record<number, string>> = {
  5000: '5 s',
  30000: '30 s',
  45000: '45 s',
  60000: '1 min',
  300000: '5 min',
  3600000: '60 min',
};

/** Words on the arrow of a transition, in their order. */
function wordsOf({ event, guard, actions, delayMs }: WalkedTransition): string {
  const length = delayMs === null ? '' : ` ${durations[delayMs] ?? `${delayMs} ms`}`;
  const cause = event.replace(/\)$/, `${length})`);
  return [
    cause,
    ...(guard === null ? [] : [`[${guard}]`]),
    ...(actions.length > 0 ? ['/', actions.join(', ')] : []),
  ].join(' ');
}

/** A label on one line: an action list that was broken over several lines is put together again. */
const oneLine = (label: string): string =>
  label
    .split('\n')
    .reduce(
      (text, line) => `${text}${line.startsWith('/ ') && text.includes(' / ') ? `, ${line.slice(2)}` : ` ${line}`}`,
    );

for (const [name, machine] of Object.entries(machines)) {
  t.test(`the chart of ${name} has every state and transition of its machine`, async (t) => {
    const chart = await chartNamed(name, machine);
    const { states, transitions } = walk(machine);
    const byId = new Map(chart.nodes.map((node) => [node.id, node]));

    t.strictSame(
      chart.nodes.map(({ id, parent, description, kind, initial, invokes, entry, exit }) => ({
        path: id,
        parent,
        description,
        kind,
        isInitial: initial,
        invokes,
        entry,
        exit,
      })),
      states,
      'every state is drawn with all it does, and none besides',
    );
    const wanted = transitions.map((each) => `${each.source} > ${each.target ?? each.source} : ${wordsOf(each)}`);
    const drawn = chart.edges.map((edge) => `${edge.source} > ${edge.target} : ${oneLine(edge.label)}`);
    t.strictSame(drawn.sort(), wanted.sort(), 'every transition is drawn with its event, guard and actions');
    t.equal(new Set(chart.edges.map((edge) => edge.id)).size, chart.edges.length, 'edge ids are unique');
    t.notOk(
      chart.edges.some((edge) => edge.label.includes('xstate.') || edge.label.includes('inline')),
      'everything has a name',
    );

    checkBoxes(t, chart, byId);
    checkLines(t, chart, byId);
    checkLabels(t, chart);
    checkSvg(t, chart);
    checkMermaid(t, name, machine, transitions);
  });
}

function checkBoxes(t: Test, chart: Chart, byId: ReadonlyMap<string, ChartNode>): void {
  const problems: string[] = [];
  for (const node of chart.nodes) {
    if (!contains({ x: 0, y: 0, width: chart.width, height: chart.height }, node))
      problems.push(`${node.id}: off the page`);
    const parent = node.parent === null ? undefined : byId.get(node.parent);
    if (parent && !contains(parent, node)) problems.push(`${node.id}: not inside its parent`);
    for (const other of chart.nodes) {
      const isNested = isBelow(byId, node.id, other.id) || isBelow(byId, other.id, node.id);
      if (other.id > node.id && !isNested && overlap(node, other)) problems.push(`${node.id} and ${other.id} overlap`);
    }
  }
  t.strictSame(problems, [], 'boxes overlap only when one is inside the other');
}

function isBelow(byId: ReadonlyMap<string, ChartNode>, id: string, ancestor: string): boolean {
  for (let up = byId.get(id)?.parent ?? null; up !== null; up = byId.get(up)?.parent ?? null) {
    if (up === ancestor) return true;
  }
  return false;
}

function checkLines(t: Test, chart: Chart, byId: ReadonlyMap<string, ChartNode>): void {
  const problems: string[] = [];
  for (const edge of chart.edges) {
    const source = byId.get(edge.source);
    const target = byId.get(edge.target);
    if (!source || !target) throw new Error(`edge ${edge.id} hangs in the air`);
    const [first] = edge.points;
    const last = edge.points.at(-1);
    if (!first || !last) {
      const label = { ...edge.labelAt, ...linesSize(edge.label.split('\n')) };
      if (!contains(source, label)) problems.push(`${edge.id}: not written in its state`);
      continue;
    }
    if (!isOnBorder(source, first)) problems.push(`${edge.id}: does not begin at ${edge.source}`);
    if (!isOnBorder(target, last)) problems.push(`${edge.id}: does not end at ${edge.target}`);
    for (const line of linesOf(edge)) {
      if (line.width > 2 && line.height > 2) problems.push(`${edge.id}: does not run square`);
      for (const node of chart.nodes) {
        const isSimple = !chart.nodes.some(({ parent }) => parent === node.id);
        const isEnd = node.id === edge.source || node.id === edge.target;
        if (isSimple && !isEnd && overlap(line, node)) problems.push(`${edge.id}: runs through ${node.id}`);
      }
    }
  }
  t.strictSame(problems, [], 'arrows run from state to state, square, and through no other');
}

/** The pieces of an arrow, a pixel wide. */
function linesOf({ points }: ChartEdge): Box[] {
  return points.slice(1).map((point, index) => {
    const before = points[index] ?? point;
    return {
      x: Math.min(before.x, point.x) - 0.6,
      y: Math.min(before.y, point.y) - 0.6,
      width: Math.abs(before.x - point.x) + 1.2,
      height: Math.abs(before.y - point.y) + 1.2,
    };
  });
}

function checkLabels(t: Test, chart: Chart): void {
  const problems: string[] = [];
  const page = { x: 0, y: 0, width: chart.width, height: chart.height };
  const arrows = chart.edges.filter(({ points }) => points.length > 0);
  const labels = arrows.map((edge) => ({ id: edge.id, ...edge.labelAt, ...linesSize(edge.label.split('\n')) }));
  const headings = chart.nodes.map((node) => headingOf(chart, node));
  for (const label of labels) {
    if (!contains(page, label)) problems.push(`${label.id}: off the page`);
    for (const node of chart.nodes) {
      if (overlap(label, node) && !contains(node, label)) problems.push(`${label.id}: over the border of ${node.id}`);
    }
    for (const heading of headings) {
      if (overlap(label, heading)) problems.push(`${label.id}: over what is written in ${heading.id}`);
    }
    for (const other of labels) {
      if (other.id > label.id && overlap(label, other)) problems.push(`${label.id}: over ${other.id}`);
    }
    for (const edge of arrows) {
      const inner = { ...label, x: label.x + 3, width: label.width - 6 };
      if (linesOf(edge).some((line) => overlap(line, inner))) problems.push(`${label.id}: crossed by ${edge.id}`);
    }
  }
  for (const edge of arrows) {
    for (const heading of headings) {
      const isCrossed = linesOf(edge).some((line) => overlap(line, heading));
      if (isCrossed) problems.push(`${edge.id}: through what is written in ${heading.id}`);
    }
  }
  t.strictSame(problems, [], 'what is written can be read');
}

/** Where the lines are that a box begins with. */
function headingOf(chart: Chart, node: ChartNode): Box & { readonly id: string } {
  const internals = chart.edges.filter(({ source, points }) => source === node.id && points.length === 0);
  const lines = [...boxLines(node), ...internals.flatMap(({ label }) => label.split('\n'))];
  const { width, height } = linesSize(lines);
  const { pad, title, titleCharacter } = chartFont;
  return {
    id: node.id,
    x: node.x + pad,
    y: node.y + pad,
    width: Math.max(width, node.label.length * titleCharacter),
    height: title + height,
  };
}

const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');

const textsOf = (markup: string): string[] =>
  [...markup.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text = '']) => unescaped(text));

/** Checks the groups of the picture, each of which is a state or a label. */
function checkSvg(t: Test, chart: Chart): void {
  const svg = svgOf(chart);
  const groups = [...svg.matchAll(/<g(?: class="([^"]*)")?><title>([^<]*)<\/title>(.*?)<\/g>/gs)];
  const states = groups.filter(([, classes]) => classes !== undefined);
  t.strictSame(
    states.map(([, , , content = '']) => textsOf(content)),
    chart.nodes.map((node) => [node.label, ...boxLines(node)]),
  );
  t.strictSame(
    states.map(([, , title = '']) => unescaped(title)),
    chart.nodes.map(({ description, label }) => description || label),
  );
  t.strictSame(
    groups.filter(([, classes]) => classes === undefined).map(([, , , content = '']) => textsOf(content).join('\n')),
    chart.edges.map(({ label }) => label),
  );
  const lines = new Set(
    chart.edges.filter(({ points }) => points.length > 0).map(({ points }) => JSON.stringify(points)),
  );
  t.equal(svg.match(/<path class="edge"/g)?.length ?? 0, lines.size, 'one line for all arrows between the same two');
}

/** Checks the arrows and notes of a Mermaid text against the walk. */
function checkMermaid(t: Test, name: string, machine: AnyStateMachine, transitions: readonly WalkedTransition[]): void {
  const lines = mermaidOf(graphOf(name, machine), { actions: true })
    .split('\n')
    .map((line) => line.trim());
  const plain = (text: string) => text.replace(/#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
  const id = (path: string) => `s_${path.replace(/\W/g, '_')}`;
  const arrows = lines.filter((line) => /^s_\w+ --> s_\w+ :/.test(line)).map(plain);
  const rest = transitions.filter(({ source }) => source !== '');
  const wanted = rest.map((each) => `${id(each.source)} --> ${id(each.target ?? each.source)} : ${wordsOf(each)}`);
  t.strictSame(arrows.sort(), wanted.sort(), 'mermaid has every arrow');
  for (const each of transitions.filter(({ source }) => source === '')) {
    const line = `${wordsOf(each)}${each.target === null ? '' : ` → ${each.target}`}`;
    t.ok(lines.map(plain).includes(line), `in every state: ${line}`);
  }
}

t.test('charts.json has the chart of each machine, rounded to a tenth of a pixel', async (t) => {
  const file = await writeCharts(join(t.testdir({}), 'charts.json'));
  const numbers: number[] = [];
  const charts = JSON.parse(await readFile(file, 'utf8'), (_, value) => {
    if (typeof value === 'number') numbers.push(value);
    return value;
  }) as Chart[];
  t.strictSame(
    charts.map((chart) => chart.name),
    Object.keys(catalogue),
  );
  t.ok(numbers.length > 1_000);
  t.same(
    numbers.filter((value) => value !== Math.round(value * 10) / 10),
    [],
  );
});

t.test('a machine is drawn the same every time', async (t) => {
  for (const [name, machine] of Object.entries({ hub: hubMachine, 'stack-change': stackChangeMachine })) {
    const [chart, again] = [await chartNamed(name, machine), await chartOf(name, machine)];
    t.strictSame(
      chart.edges.map(({ id, label }) => [id, label]),
      again.edges.map(({ id, label }) => [id, label]),
    );
    const moved = chart.nodes.filter(({ id, x, y }) => {
      const node = again.nodes.find((each) => each.id === id);
      return Math.abs((node?.x ?? Number.NaN) - x) > 0.06 || Math.abs((node?.y ?? Number.NaN) - y) > 0.06;
    });
    t.strictSame(moved, [], name);
  }
});
