import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { packageRoot } from '../lib/index.ts';
import { Chart } from '../protocol/index.ts';

let charts: Promise<readonly Chart[]> | undefined;

/**
 * The charts that the build drew (`dist/charts.json`), read once, when first asked for. This module runs from `src/`
 * in development and from a bundle somewhere in `dist/` when installed, so the package's root is looked for upwards.
 * Rejects when there is no build; the next call tries again.
 */
export function loadCharts(): Promise<readonly Chart[]> {
  charts ??= readCharts().catch((error: unknown) => {
    charts = undefined;
    throw error;
  });
  return charts;
}

/** Where the build writes the charts. */
export function chartsFile(): string {
  return join(packageRoot(), 'dist', 'charts.json');
}

async function readCharts(): Promise<readonly Chart[]> {
  const file = chartsFile();
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new Error(`The statecharts have not been drawn (${file}): run "npm run build".`, { cause: error });
  });
  return v.parse(v.array(Chart), JSON.parse(text));
}
