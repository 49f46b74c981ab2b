/** Every chart in every state can be read at Fit, on a desktop and on a phone: the measure is that of `docs/inspector.md`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { catalogue } from '../../machines/index.ts';
import { drawnChart } from '../../scripts/charts.ts';
import { leavesOfGraph, pathTo } from '../../src/inspect/detail.ts';
import type { Chart } from '../../src/protocol/inspection.ts';
import { actorsStage } from './actors-scene.ts';
import { overflowsAt } from './scene.ts';

/** One actor in one state, and the required contents of its chart. */
interface Subject {
  readonly id: string;
  readonly leaf: string;
  /** Names of the active states and, at each of their levels, of the states beside them. */
  readonly names: readonly string[];
  readonly beside: readonly string[];
  readonly events: readonly string[];
}

interface Measured {
  readonly id: string;
  readonly share: number;
  readonly faults: readonly string[];
}

const onPage = await actorsStage();
const charts = await Promise.all(Object.entries(catalogue).map(([name, machine]) => drawnChart(name, machine)));
const subjects = charts.flatMap(subjectsOf);

function subjectsOf(chart: Chart): Subject[] {
  return leavesOfGraph(chart.nodes).map((leaf) => {
    const path = pathTo(leaf);
    const named = (keep: (id: string, parent: string | null) => boolean) =>
      chart.nodes.filter(({ id, parent }) => id !== '' && keep(id, parent)).map(({ label }) => label);
    return {
      id: `${chart.name}:${leaf}`,
      leaf,
      names: named((id) => path.includes(id)),
      beside: named((_, parent) => parent === '' || path.includes(parent ?? '-')),
      events: chart.edges.filter(({ source }) => source === '' || path.includes(source)).map(({ event }) => event),
    };
  });
}

/** A recording of version 1 with an actor in each state of each machine. */
function recording(): string {
  const at = '2026-01-02T03:04:05.000Z';
  const records = subjects.map(({ id, leaf }) => ({
    type: 'actor',
    id,
    parent: null,
    machine: id.split(':')[0],
    title: id,
    states: pathTo(leaf),
    at,
    projection: {},
    steps: 0,
    since: at,
    statistics: {},
  }));
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
async function measureAll(page: Page, isPhone: boolean): Promise<readonly Measured[]> {
  return page.evaluate(
    async ({ subjects, isPhone }) => {
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
          if (isShown && svg?.querySelector(`.node.active[data-state="${leaf}"] .name`)) return svg;
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
        const frame = text.classList.contains('name') && text.parentElement?.querySelector('.box');
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
        const required = [...new Set([...subject.names, ...(isPhone ? [] : subject.beside)])];
        const gone = [
          ...required.filter((name) => !drawn.includes(name)),
          ...new Set(subject.events.filter((event) => !list.includes(event.replace(/\)$/, '')))),
        ];
        const share = (texts.length - faults.length) / (texts.length + gone.length);
        measured.push({ id: subject.id, share, faults: [...faults, ...gone.map((name) => `“${name}”: nowhere`)] });
      }
      document.documentElement.style.opacity = '';
      return measured;
    },
    { subjects, isPhone },
  );
}

onPage(
  'regression: at least 95 % of each chart can be read in each state, on a desktop and on a phone',
  async (t, { page }) => {
    const file = join(t.testdir({}), 'states.json');
    writeFileSync(file, recording());
    await page.locator('input[type=file]').setInputFiles(file);
    await page.locator('.banner', { hasText: 'Recording' }).waitFor();
    for (const [width, height] of [
      [1440, 900],
      [390, 844],
    ] as const) {
      await page.setViewportSize({ width, height });
      const measured = await measureAll(page, width < 500);
      t.equal(measured.length, subjects.length);
      t.same(
        measured.filter(({ share }) => share < 0.95),
        [],
        `${width} × ${height}`,
      );
    }
    t.notOk(await overflowsAt(page, 320), 'nothing is pushed sideways at 320 px');
  },
);
