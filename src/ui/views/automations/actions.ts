import { messageOf } from '../../../lib/browser.ts';
import { dashboardPaths } from '../../../protocol/browser.ts';
import type { Automation, AutomationRun, AutomationsState } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';

const of = (pattern: string, id: string): string => pattern.replace(':id', encodeURIComponent(id));

export const readState = (app: App, signal: AbortSignal): Promise<AutomationsState> =>
  app.api.get(dashboardPaths.automationsState, signal);

/** A page of history, newest first. @param before a runId */
export function readRuns(app: App, id: string, before: string | undefined, signal?: AbortSignal) {
  const query = new URLSearchParams({ limit: '50', ...(before !== undefined && { before }) });
  return app.api.get<{ readonly data: readonly AutomationRun[]; readonly next?: string }>(
    `${of(dashboardPaths.automationRuns, id)}?${query}`,
    signal,
  );
}

/** Actions on an automation. Each shows its result as a notice; the stream reports the effect. */
export function automationActions(app: App, reload: () => void) {
  const attempt = async (work: Promise<unknown>, done: string) => {
    try {
      await work;
      app.toast({ text: done, ms: 3_000 });
    } catch (error) {
      app.toast({ text: messageOf(error), tone: 'danger' });
    }
    reload();
  };
  return {
    add: (job: unknown) => app.api.send<unknown>('POST', dashboardPaths.automations, job),
    run: ({ id, name }: Automation) =>
      attempt(app.api.send('POST', of(dashboardPaths.automationRun, id)), `“${name}” runs now.`),
    enable: ({ id, name }: Automation, enabled: boolean) =>
      attempt(
        app.api.send('POST', of(dashboardPaths.automationEnable, id), { enabled }),
        `“${name}” is ${enabled ? 'on' : 'off'}.`,
      ),
    remove: ({ id, name }: Automation) =>
      attempt(app.api.send('DELETE', of(dashboardPaths.automation, id)), `“${name}” was deleted.`),
    refresh: () => attempt(app.api.send('POST', dashboardPaths.automationsRefresh), 'Schedules reloaded.'),
  };
}

export type AutomationActions = ReturnType<typeof automationActions>;
