/** Draws every machine of the catalogue into `dist/charts.json`, which the Hub serves and the page shows. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { catalogue } from '../machines/index.ts';
import { chartOf, chartsFile } from '../src/inspect/index.ts';

/**
 * Writes the charts of the catalogue.
 * @param draw makes one chart; to compute all layouts takes ten seconds
 * @returns the path of the file
 */
export async function writeCharts(file: string = chartsFile(), draw: typeof chartOf = chartOf): Promise<string> {
  const charts = await Promise.all(Object.entries(catalogue).map(([name, machine]) => draw(name, machine)));
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
