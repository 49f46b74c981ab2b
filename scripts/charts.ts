/** Writes every machine of the catalogue, drawn, into `dist/charts.json`, which the Hub serves and the page shows. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { catalogue } from '../machines/index.ts';
import { chartsFile } from '../src/inspect/index.ts';
import { drawnChart } from './drawings.ts';

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
