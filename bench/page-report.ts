/** Tables and targets of the benchmark of the page. */
import { budget, type PageWeight } from '../scripts/page-budget.ts';
import { type Check, median, type Result } from './harness.ts';
import type { Acts, Looks } from './page-acts.ts';
import type { FrameFigures } from './page-probes.ts';

const kibibyte = 1024;

/** Milliseconds of an opening of the page. */
export interface Paint {
  readonly firstMs: number;
  readonly readyMs: number;
}

/** Opening and scrolling of a long session. */
export interface Opening {
  readonly rowsMs: number;
  readonly allMs: number;
  readonly loadFrameMs: number;
  readonly scrollFrameMs: number;
  readonly nodes: number;
}

/** The list of many workspaces. */
export interface HubFigures {
  readonly listMs: number;
  readonly endMs: number;
  readonly tasksOver50: number;
  readonly longestTaskMs: number;
}

/** A session in which a lot happens. */
export interface LiveFigures extends FrameFigures {
  readonly events: number;
  readonly shown: number;
  readonly heapMiB: number;
  readonly grownMiB: number;
}

/** Everything that a run has measured. */
export interface Found {
  readonly weight: PageWeight;
  readonly normal: readonly Paint[];
  readonly slowed: readonly Paint[];
  readonly openings: readonly Opening[];
  readonly lists: readonly Opening[];
  readonly hubs: readonly HubFigures[];
  readonly live: LiveFigures;
  /** Milliseconds until the tree of fifty tools is drawn. */
  readonly trees: readonly number[];
  readonly looks: readonly Looks[];
  readonly acts: readonly Acts[];
}

/** Tables and checks of the measured values. */
export function report({ weight, normal, slowed, openings, lists, hubs, live, trees, looks, acts }: Found): Result {
  const of = <T>(found: readonly T[], key: (each: T) => number) => median(found.map(key));
  const openingRow = (name: string, found: readonly Opening[]) => [
    ...[name, of(found, (each) => each.rowsMs), of(found, (each) => each.allMs)],
    ...[
      of(found, (each) => each.loadFrameMs),
      of(found, (each) => each.scrollFrameMs),
      of(found, (each) => each.nodes),
    ],
  ];
  const checks: readonly Check[] = [
    { what: 'first contentful paint', measured: of(normal, (each) => each.firstMs), atMost: 200, unit: ' ms' },
    {
      what: 'first contentful paint, CPU 4 × slower',
      measured: of(slowed, (each) => each.firstMs),
      atMost: 500,
      unit: ' ms',
    },
    { what: 'Now with 8 workspaces', measured: of(acts, (each) => each.nowMs), atMost: 300, unit: ' ms' },
    { what: 'another workspace', measured: of(acts, (each) => each.switchMs), atMost: 100, unit: ' ms' },
    {
      what: 'a turn begins → its request has card, badge and title',
      measured: of(acts, (each) => each.requestMs),
      atMost: 1_000,
      unit: ' ms',
    },
    { what: 'first chart of an actor', measured: of(looks, (each) => each.firstChartMs), atMost: 150, unit: ' ms' },
    { what: 'next chart of an actor', measured: of(looks, (each) => each.nextChartMs), atMost: 50, unit: ' ms' },
    { what: '500 steps of time travel: steps a second', measured: of(looks, (each) => each.travelFps), atLeast: 59 },
    {
      what: '500 steps of time travel: tasks over 50 ms',
      measured: of(looks, (each) => each.travel.tasksOver50),
      atMost: 0,
    },
    { what: 'script of a step', measured: of(looks, (each) => each.scriptMs), atMost: 16, unit: ' ms' },
    { what: 'the palette answers a key', measured: of(looks, (each) => each.paletteMs), atMost: 50, unit: ' ms' },
    { what: '50 tools as a tree', measured: median(trees), atMost: 100, unit: ' ms' },
    { what: '50 000 events: first rows', measured: of(openings, (each) => each.rowsMs), atMost: 300, unit: ' ms' },
    {
      what: '50 000 events: longest frame while scrolling',
      measured: Math.max(
        of(openings, (each) => each.scrollFrameMs),
        of(lists, (each) => each.scrollFrameMs),
      ),
      atMost: 50,
      unit: ' ms',
    },
    { what: '200 events/s: frames over 100 ms', measured: live.over100, atMost: 0 },
    { what: '200 events/s: heap that stays', measured: live.grownMiB, atMost: 20, unit: ' MiB' },
    { what: '1 000 workspaces: list is there', measured: of(hubs, (each) => each.listMs), atMost: 1_000, unit: ' ms' },
    {
      what: '1 000 workspaces, 200 change at once: tasks over 50 ms once the list is there',
      measured: of(hubs, (each) => each.tasksOver50),
      atMost: 0,
    },
    {
      what: 'scripts before the first view (brotli)',
      measured: weight.initialScripts / kibibyte,
      atMost: budget.initialScripts / kibibyte,
      unit: ' KiB',
    },
    {
      what: 'everything that is fetched (brotli)',
      measured: weight.everything / kibibyte,
      atMost: budget.everything / kibibyte,
      unit: ' KiB',
    },
  ];
  return {
    tables: [
      {
        title: 'Opening the page, milliseconds (median)',
        columns: ['', 'first contentful paint', 'overview is there'],
        rows: [
          ['full speed', of(normal, (each) => each.firstMs), of(normal, (each) => each.readyMs)],
          ['CPU 4 × slower', of(slowed, (each) => each.firstMs), of(slowed, (each) => each.readyMs)],
        ],
      },
      {
        title: 'Acts on the page, milliseconds (median)',
        columns: ['', 'ms'],
        rows: [
          ['Now with 8 workspaces', of(acts, (each) => each.nowMs)],
          ['another workspace, in the same view', of(acts, (each) => each.switchMs)],
          ['a turn begins → its request has card, badge and title', of(acts, (each) => each.requestMs)],
          ['an actor is chosen → its chart, the first', of(looks, (each) => each.firstChartMs)],
          ['the next ones', of(looks, (each) => each.nextChartMs)],
          ['a step of time travel: script', of(looks, (each) => each.scriptMs)],
          ['a key in the palette, the longest of eleven', of(looks, (each) => each.paletteMs)],
          ['a session of 50 tools as a tree', median(trees)],
        ],
      },
      {
        title: '500 steps of time travel, one a frame (median)',
        columns: ['steps a second', 'longest frame, ms', 'tasks over 50 ms', 'longest of them'],
        rows: [
          [
            of(looks, (each) => each.travelFps),
            of(looks, (each) => each.travel.longestMs),
            of(looks, (each) => each.travel.tasksOver50),
            of(looks, (each) => each.travel.longestTaskMs),
          ],
        ],
      },
      {
        title: 'A session of 50 000 events, milliseconds (median)',
        columns: ['view', 'first rows', 'all events', 'longest frame while loading', 'while scrolling', 'nodes'],
        rows: [openingRow('waterfall', openings), openingRow('list', lists)],
      },
      {
        title: '200 events a second in a session that is watched',
        columns: [
          'events',
          'frames',
          'longest frame, ms',
          'frames over 100 ms',
          'long tasks over 100 ms',
          'heap at the end, MiB',
          'grown, MiB',
        ],
        rows: [[live.events, live.frames, live.longestMs, live.over100, live.longTasks, live.heapMiB, live.grownMiB]],
      },
      {
        title: '1 000 workspaces, milliseconds (median)',
        columns: ['list is there', 'to its last row', 'tasks over 50 ms in 5 s after it', 'longest of them'],
        rows: [
          [
            of(hubs, (each) => each.listMs),
            of(hubs, (each) => each.endMs),
            of(hubs, (each) => each.tasksOver50),
            of(hubs, (each) => each.longestTaskMs),
          ],
        ],
      },
    ],
    checks,
    notes: [
      'A real Chromium, headless and without a graphics card, on the same machine as the server. The Dashboard is the real one over a real database; a stand-in for the Hub lists the 1 000 workspaces and has the actors. The Hub with 8 workspaces is real; another workspace is counted from the press until a message can be written there.',
    ],
  };
}
