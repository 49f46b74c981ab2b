/** A runtime whose traces are counted and exported, without a server around it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import * as v from 'valibot';
import {
  createBuiltinTools,
  type ModelProvider,
  openStore,
  type RuntimeOptions,
  selectTools,
} from '../../src/agent/index.ts';
import { DemoProvider } from '../../src/agent/providers/demo.ts';
import { Config } from '../../src/config/index.ts';
import { createLogger, type Logger } from '../../src/log/index.ts';
import { renderMetrics, startTelemetry } from '../../src/telemetry/index.ts';
import { service } from '../agent/helpers.ts';
import { parse } from './prometheus.ts';

export function temporaryDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-telemetry-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export const telemetrySettings = (settings: Partial<Config['Telemetry']> = {}): Config['Telemetry'] =>
  v.parse(Config, { Telemetry: settings }).Telemetry;

/** Time for the last spans that a busy machine does not exceed. */
export const patientMs = 300_000;

/** Logger, and the records that it has written. */
export function logged(): { readonly logger: Logger; readonly lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const stream = { write: (text: string) => lines.push(JSON.parse(text)) };
  return { logger: createLogger({ name: 'test', level: 'debug', stream, pretty: false }), lines };
}

export interface SceneOptions extends Partial<RuntimeOptions> {
  readonly telemetry?: Partial<Config['Telemetry']>;
  readonly flushMs?: number;
}

/** Threads with the built-in tools in a workspace of their own; `stop` flushes the traces and ends telemetry. */
export function scene(t: Test, provider: ModelProvider = new DemoProvider({ paceMs: 0 }), options: SceneOptions = {}) {
  const workspacePath = temporaryDirectory(t);
  const { telemetry: settings, flushMs = patientMs, ...rest } = options;
  const { logger, lines } = logged();
  const store = openStore(workspacePath, { onFault: (error) => t.fail('a fault in the background', { error }) });
  const config = v.parse(Config, {});
  const telemetry = startTelemetry({
    settings: telemetrySettings(settings),
    workspacePath,
    traces: store.traces,
    describe: () => runtime.describe(),
    logger,
    flushMs,
  });
  const builtin = createBuiltinTools({
    tools: config.Tools,
    blockedPaths: [],
    passEnvironment: [],
    secrets: [],
    environment: process.env,
    home: join(workspacePath, 'home'),
  });
  const { runtime, bugs } = service(provider, {
    workspacePath,
    store: store.threads,
    traces: store.traces,
    tools: () => selectTools(builtin, []),
    ...rest,
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= runtime.close().then(() => {
      store.close();
      return telemetry.stop();
    });
    return stopping;
  };
  t.teardown(stop);
  const scrape = async () => {
    store.traces.flush();
    const sources = { version: '1.2.3', telemetry, runtime, traces: store.traces };
    const { contentType, text } = await renderMetrics(sources);
    return { contentType, text, families: parse(text) };
  };
  return { runtime, bugs, store, telemetry, logger, lines, workspacePath, stop, scrape };
}
