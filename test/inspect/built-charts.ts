import type { AnyStateMachine } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import { isBuilt } from '../../scripts/stamp.mjs';
import { chartOf, loadCharts } from '../../src/inspect/index.ts';
import type { Chart } from '../../src/protocol/inspection.ts';

const drawn = new Map<string, Promise<Chart>>();
const isDrawnByBuild = isBuilt();

/**
 * Returns the chart of a machine: for the catalogue the one that users see when `dist/` was built from these sources, as it is within
 * `npm test`; else it is drawn, which takes up to ten seconds.
 */
export async function chartNamed(name: string, machine: AnyStateMachine): Promise<Chart> {
  if (isDrawnByBuild && name in catalogue) {
    const chart = (await loadCharts()).find((each) => each.name === name);
    if (!chart) throw new Error(`The build drew no chart of ${name}`);
    return chart;
  }
  const chart = drawn.get(name) ?? chartOf(name, machine);
  drawn.set(name, chart);
  return chart;
}
