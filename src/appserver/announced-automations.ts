import type { Runtime, Store } from '../agent/index.ts';
import { Automations } from '../automations/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import type { AssemblyOptions } from './assembly-options.ts';
import { automationsSettingsOf } from './runtime-settings.ts';
import { faultOf } from './storage.ts';

/** The automations of a workspace, whose changes go to telemetry and to connected clients. */
export function automationsOf(
  { workspacePath, config, logger, observe }: Pick<AssemblyOptions, 'workspacePath' | 'config' | 'logger' | 'observe'>,
  { schedules }: Store,
  runtime: Runtime,
  telemetry: Telemetry,
): Automations {
  const settings = automationsSettingsOf(config);
  const onFault = faultOf(logger, 'automations cannot be saved');
  const automations = new Automations({ workspacePath, schedules, runtime, settings, onFault, observe });
  automations.subscribe(({ automation, removed }) => {
    telemetry.noteAutomation(automation, removed);
    if (automation.kind === 'cron') {
      runtime.feed.broadcast({ method: 'cron/stateChanged', params: { job: automation, removed } });
    } else {
      runtime.feed.broadcast({ method: 'automation/task/updated', params: { task: automation, removed } });
    }
  });
  return automations;
}
