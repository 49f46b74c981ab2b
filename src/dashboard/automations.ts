import * as v from 'valibot';
import { AgentError, type AgentErrorName } from '../agent/index.ts';
import { type AnyRoute, HttpError, json, type Reply, type RequestContext } from '../http/index.ts';
import { AutomationInput, type AutomationsState, dashboardPaths, Schedule } from '../protocol/index.ts';
import type { Automations, DashboardOptions } from './options.ts';
import { parseQuery, shortText, wholeNumber } from './query.ts';

/** Answers where automations are switched off. */
const nothing = (): AutomationsState => ({
  revision: 0,
  generatedAt: new Date().toISOString(),
  isRunning: false,
  tasks: [],
  cron: [],
  countsByState: {},
});

/** Statuses of refusals by automations; every other one is the caller's mistake. */
const statuses: Readonly<Partial<Record<AgentErrorName, number>>> = {
  automationNotFound: 404,
  automationConflict: 409,
  automationInvalid: 409,
  automationsDisabled: 409,
  overloaded: 503,
  storageFailed: 503,
};

/** Runs `work`; a refusal by automations becomes an HTTP error with the same name. */
async function answered(work: () => unknown, status = 200): Promise<Reply> {
  try {
    return json(status, await work());
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    const { reason, message, detail, data } = error;
    throw new HttpError(statuses[reason] ?? 400, reason, detail ?? message, data);
  }
}

/** A job, as `cron/add` takes it: its schedule is required. */
const JobInput = v.object({ ...AutomationInput.entries, schedule: Schedule });
const EnableInput = v.object({ enabled: v.boolean() });
const runsLimit = 500;
const runsQuery = { limit: v.optional(wholeNumber(1, runsLimit), '50'), before: v.optional(shortText) };

/** State and buttons of automations. Bodies and answers are those of the JSON-RPC methods `automation/*`. */
export function automationRoutes({ automations, readOnly }: DashboardOptions): Omit<AnyRoute, 'auth'>[] {
  function existing(): Automations {
    if (automations) return automations;
    throw new HttpError(409, 'automationsDisabled', 'Automations are switched off.', null);
  }
  function refuseReadOnly(): void {
    if (readOnly !== undefined) throw new HttpError(403, 'readOnly', readOnly, null);
  }
  function changeable(): Automations {
    refuseReadOnly();
    return existing();
  }
  const idOf = ({ params }: RequestContext) => params['id'] ?? '';

  return [
    {
      method: 'GET',
      path: dashboardPaths.automationsState,
      handler: () => answered(() => automations?.state() ?? nothing()),
    },
    {
      method: 'POST',
      path: dashboardPaths.automationsRefresh,
      handler: () =>
        answered(async () => {
          refuseReadOnly();
          const { revision } = (await automations?.refresh()) ?? nothing();
          return { triggered: automations !== undefined, name: 'automations', revision };
        }, 202),
    },
    {
      method: 'POST',
      path: dashboardPaths.automations,
      handler: (context) =>
        answered(async () => {
          const automations = changeable();
          return { automation: await automations.add('cron', await context.json(JobInput)) };
        }),
    },
    {
      method: 'GET',
      path: dashboardPaths.automation,
      handler: (context) => answered(async () => ({ automation: await existing().read(idOf(context)) })),
    },
    {
      method: 'DELETE',
      path: dashboardPaths.automation,
      handler: (context) => answered(async () => ({ removed: await changeable().remove(idOf(context)) })),
    },
    {
      method: 'GET',
      path: dashboardPaths.automationRuns,
      handler: (context) => answered(() => existing().runs(idOf(context), parseQuery(context.query, runsQuery))),
    },
    {
      method: 'POST',
      path: dashboardPaths.automationRun,
      handler: (context) => answered(async () => ({ automation: await changeable().run(idOf(context)) })),
    },
    {
      method: 'POST',
      path: dashboardPaths.automationEnable,
      handler: (context) =>
        answered(async () => {
          const { enabled } = await context.json(EnableInput);
          return { automation: await changeable().setEnabled(idOf(context), enabled) };
        }),
    },
  ];
}
