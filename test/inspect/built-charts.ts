import type { AnyStateMachine } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import { drawnChart } from '../../scripts/drawings.ts';
import { chartOf } from '../../src/inspect/chart.ts';
import type { Chart } from '../../src/protocol/inspection.ts';

const drawn = new Map<string, Promise<Chart>>();

/** Returns the chart of a machine: for the catalogue the one that the build writes, else a fresh layout. */
export async function chartNamed(name: string, machine: AnyStateMachine): Promise<Chart> {
  const chart = drawn.get(name) ?? (name in catalogue ? drawnChart(name, machine) : chartOf(name, machine));
  drawn.set(name, chart);
  return chart;
}
