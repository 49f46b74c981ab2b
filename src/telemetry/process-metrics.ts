import { type Family, plain } from './metric.ts';
import { processMetrics } from './table.ts';

/** State of this process. Read only at a scrape: nothing measures in between. */
export function processFamilies(): Family[] {
  const { performance } = process.getBuiltinModule('node:perf_hooks');
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, heapTotal } = process.memoryUsage();
  return [
    plain(processMetrics.cpu, (user + system) / 1e6),
    plain(processMetrics.memory, rss),
    plain(processMetrics.startTime, performance.timeOrigin / 1_000),
    plain(processMetrics.heapUsed, heapUsed),
    plain(processMetrics.heapTotal, heapTotal),
    plain(processMetrics.busy, performance.eventLoopUtilization().active / 1_000),
  ];
}
