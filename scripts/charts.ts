/** Writes every machine of the catalogue, drawn, into `dist/charts.json`, which the Hub serves and the page shows. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { AnyStateMachine } from 'xstate';
import { catalogue } from '../machines/index.ts';
import { chartOf, drawChart } from '../src/inspect/chart.ts';
import { decodeWhole } from '../src/inspect/encode.ts';
import { chartsFile, graphOf } from '../src/inspect/index.ts';
import type { Chart } from '../src/protocol/index.ts';
import { currentWhole } from './drawings.ts';

/** The chart of a machine from its drawings; it is laid out, which takes a second, when they are of another version of it. */
export async function drawnChart(name: string, machine: AnyStateMachine): Promise<Chart> {
  const graph = graphOf(name, machine);
  const whole = currentWhole(graph);
  return whole ? drawChart(graph, decodeWhole(graph, whole)) : chartOf(name, machine);
}

/** Writes the charts of the catalogue. Returns the path of the file. */
export async function writeCharts(file: string = chartsFile()): Promise<string> {
  const charts = await Promise.all(Object.entries(catalogue).map(([name, machine]) => drawnChart(name, machine)));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(
    file,
    JSON.stringify(charts, (_, value) => (typeof value === 'number' ? Math.round(value * 10) / 10 : value)),
  );
  return file;
}

if (import.meta.main ?? process.argv[1]?.endsWith('charts.ts')) {
  console.log(await writeCharts());
}
