/** Every chart in every state can be read at Fit, at five sizes, and no box moves: the measure is that of `docs/inspector.md`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { catalogue } from '../../machines/index.ts';
import { drawnChart } from '../../scripts/drawings.ts';
import type { Chart } from '../../src/protocol/inspection.ts';
import { actorsStage } from './actors-scene.ts';
import { overflowsAt } from './scene.ts';

/** One actor in one state, and the required contents of its chart. */
interface Subject {
  readonly id: string;
  readonly machine: string;
  readonly leaf: string;
  /** Names of all states. */
  readonly names: readonly string[];
  readonly events: readonly string[];
}

interface Measured {
  readonly id: string;
  readonly share: number;
  readonly faults: readonly string[];
  /** Left and upper edge of each box, in CSS pixels. */
  readonly places: readonly number[];
}

/** The smallest pane of each drawing shows every state; a drawing does not depend on the state, so the others show one of each machine. */
const sizes = [
  [1280, 720, 'every state'],
  [1366, 768, 'one state'],
  [1536, 730, 'one state'],
  [1440, 900, 'one state'],
  [390, 844, 'every state'],
] as const;

const onPage = await actorsStage();
const charts = await Promise.all(Object.entries(catalogue).map(([name, machine]) => drawnChart(name, machine)));
const subjects = charts.flatMap(subjectsOf);

function pathTo(id: string): string[] {
  return id.split('.').map((_, index, keys) => keys.slice(0, index + 1).join('.'));
}

function subjectsOf(chart: Chart): Subject[] {
  const leaves = chart.nodes.filter(({ id }) => id !== '' && !chart.nodes.some(({ parent }) => parent === id));
  return leaves.map(({ id: leaf }) => {
    const path = pathTo(leaf);
    return {
      id: `${chart.name}:${leaf}`,
      machine: chart.name,
      leaf,
      names: chart.nodes.filter(({ id }) => id !== '').map(({ label }) => label),
      events: chart.edges.filter(({ source }) => source === '' || path.includes(source)).map(({ event }) => event),
    };
  });
}

/** A recording with an actor in each state of each machine: it has visited every state, and a transition has led to this one. */
function recording(): string {
  const at = '2026-01-02T03:04:05.000Z';
  const records = subjects.flatMap(({ id, machine, leaf }) => {
    const chart = charts.find(({ name }) => name === machine);
    const statistics = Object.fromEntries(chart?.nodes.map((node) => [node.id, { visits: 12, ms: 3_400 }]) ?? []);
    const edge = chart?.edges.find(({ target, points }) => target === leaf && points.length > 0);
    const states = pathTo(leaf);
    const actor = { type: 'actor', id, parent: null, machine, title: id, at, projection: {}, since: at, statistics };
    const step = { type: 'transition', id, step: 1, at, event: edge?.event, source: null, actions: [], projection: {} };
    return [
      { ...actor, states, steps: 0 },
      ...(edge ? [{ ...step, edges: [edge.id], from: states, to: states, entered: [] }] : []),
    ];
  });
  return JSON.stringify({
    format: 'oratorio-recording',
    version: 1,
    about: {},
    recordedAt: at,
    charts,
    dates: [],
    records,
  });
}

/** Opens each actor, presses Fit and measures the drawing. Runs in the page, which takes a second for all of them. */
async function measureAll(page: Page, subjects: readonly Subject[]): Promise<readonly Measured[]> {
  return page.evaluate(
    async ({ subjects }) => {
      const pause = () => new Promise((resolve) => requestAnimationFrame(resolve));
      // Plain numbers: each text is compared with each other one, and reading a `DOMRect` is a call into the browser.
      type Box = Pick<DOMRect, 'left' | 'right' | 'top' | 'bottom'>;
      const boxOf = (element: Element): Box => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        return { left, right, top, bottom };
      };
      const area = ({ left, right, top, bottom }: Box) => Math.max(0, right - left) * Math.max(0, bottom - top);
      const common = (a: Box, b: Box): Box => ({
        left: Math.max(a.left, b.left),
        right: Math.min(a.right, b.right),
        top: Math.max(a.top, b.top),
        bottom: Math.min(a.bottom, b.bottom),
      });
      const open = async ({ id, leaf }: (typeof subjects)[number]): Promise<SVGSVGElement> => {
        location.hash = `#/actors/${encodeURIComponent(id)}`;
        for (;;) {
          await pause();
          const svg = document.querySelector<SVGSVGElement>('figure.chart .pane > svg');
          const isShown = document.querySelector('.actor-head h1')?.textContent === id;
          if (isShown && svg?.querySelector(`.scene:not(.whole) .node.active[data-state="${leaf}"] .name`)) return svg;
        }
      };
      interface Drawn {
        readonly text: SVGTextElement;
        readonly box: Box;
      }
      const faultOf = ({ text, box }: Drawn, view: Box, all: readonly Drawn[]): string | null => {
        const matrix = text.getScreenCTM();
        const scale = matrix ? Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c)) : 0;
        const size = Number.parseFloat(getComputedStyle(text).fontSize) * scale;
        if (size < 11) return `${size.toFixed(1)} px`;
        if (area(common(box, view)) < 0.98 * area(box)) return 'outside';
        const top = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
        if (top !== text) return `covered by ${top?.outerHTML.slice(0, 80)}`;
        const isOver = (other: Drawn) => other.text !== text && area(common(box, other.box)) > 0.12 * area(box);
        if (all.some(isOver)) return 'over another word';
        const frame = text.classList.contains('name') && text.closest('[data-state]')?.querySelector('.box');
        if (frame && area(common(box, boxOf(frame))) < 0.98 * area(box)) return 'spills out of its box';
        return null;
      };
      const measured: Measured[] = [];
      // Boxes are measured, so nothing needs to be painted, which takes a quarter of the processor time.
      document.documentElement.style.opacity = '0';
      for (const subject of subjects) {
        const svg = await open(subject);
        const fit = [...document.querySelectorAll<HTMLButtonElement>('.tools button')].find(({ textContent }) =>
          textContent.startsWith('Fit'),
        );
        fit?.click();
        svg.scrollIntoView({ block: 'center' });
        await pause();
        const view = common(boxOf(svg), { left: 0, right: innerWidth, top: 0, bottom: innerHeight });
        const texts = [...svg.querySelectorAll('text')]
          .map((text) => ({ text, box: boxOf(text) }))
          .filter(({ box }) => area(box) > 0);
        const faults = texts.flatMap((one) => {
          const fault = faultOf(one, view, texts);
          return fault === null ? [] : [`“${one.text.textContent}”: ${fault}`];
        });
        const drawn = texts.map(({ text }) => text.textContent);
        const list = document.querySelector('figure.chart .next-events')?.textContent ?? '';
        const gone = [
          ...new Set(subject.names.filter((name) => !drawn.includes(name))),
          ...new Set(subject.events.filter((event) => !list.includes(event.replace(/\)$/, '')))),
        ];
        const share = (texts.length - faults.length) / (texts.length + gone.length);
        const places = [...svg.querySelectorAll('[data-state] > rect')].flatMap((rect) => {
          const { left, top } = boxOf(rect);
          return [left - view.left, top - view.top];
        });
        measured.push({
          id: subject.id,
          share,
          faults: [...faults, ...gone.map((name) => `“${name}”: nowhere`)],
          places,
        });
      }
      document.documentElement.style.opacity = '';
      return measured;
    },
    { subjects },
  );
}

onPage(
  'regression: every state of every machine is drawn legibly at five sizes, and its boxes stay where they are',
  async (t, { page }) => {
    const file = join(t.testdir({}), 'states.json');
    writeFileSync(file, recording());
    await page.locator('input[type=file]').setInputFiles(file);
    await page.locator('.banner', { hasText: 'Recording' }).waitFor();
    for (const [width, height, extent] of sizes) {
      const measuredHere = extent === 'every state' ? subjects : charts.flatMap((chart) => subjectsOf(chart).slice(-1));
      await page.setViewportSize({ width, height });
      const measured = await measureAll(page, measuredHere);
      t.equal(measured.length, measuredHere.length);
      t.same(
        measured.filter(({ share }) => share < 0.95).map(({ places: _, ...rest }) => rest),
        [],
        `${width} × ${height}`,
      );
      for (const { name } of charts) {
        const [first, ...others] = measured.filter(({ id }) => id.startsWith(`${name}:`));
        const moves = others.map(({ places }) => places.map((at, index) => Math.abs(at - (first?.places[index] ?? 0))));
        t.ok(Math.max(0, ...moves.flat()) <= 1, `${name} does not move at ${width} × ${height}`);
      }
    }
    t.notOk(await overflowsAt(page, 320), 'nothing is pushed sideways at 320 px');
  },
);
