import { AgentError, type ScheduleReader } from '../agent/index.ts';
import type { Automation, AutomationRun, AutomationsState } from '../protocol/index.ts';

/** Jobs and tasks of a workspace without a server, from the rows, `isRunning: false`. @throws StorageError */
export async function readAutomations(schedules: ScheduleReader): Promise<AutomationsState> {
  const { storedState } = await import('./views.ts');
  return storedState(schedules, Date.now());
}

/**
 * Automations of a workspace without a server, with the methods of `Automations`, for viewers: every change is refused.
 * Methods that read may throw StorageError, and AgentError automationNotFound.
 */
export class StoredAutomations {
  readonly #schedules: ScheduleReader;

  constructor(schedules: ScheduleReader) {
    this.#schedules = schedules;
  }

  state(): Promise<AutomationsState> {
    return readAutomations(this.#schedules);
  }

  refresh(): Promise<AutomationsState> {
    return this.state();
  }

  async read(id: string): Promise<Automation> {
    const { cron, tasks } = await this.state();
    const found = [...cron, ...tasks].find((automation) => automation.id === id);
    if (!found) throw new AgentError('automationNotFound', { automationId: id });
    return found;
  }

  async runs(
    id: string,
    range: { readonly limit: number; readonly before?: string | undefined },
  ): Promise<{ readonly data: readonly AutomationRun[]; readonly next?: string }> {
    if (!this.#schedules.automation(id)) throw new AgentError('automationNotFound', { automationId: id });
    const { historyOf } = await import('./views.ts');
    return historyOf(this.#schedules, id, range);
  }

  /** @throws AgentError automationsDisabled, like the methods that follow */
  async add(): Promise<Automation> {
    throw refused();
  }

  async run(id: string): Promise<Automation> {
    throw refused(id);
  }

  async setEnabled(id: string): Promise<Automation> {
    throw refused(id);
  }

  async remove(id: string): Promise<boolean> {
    throw refused(id);
  }

  /** Returns a subscription without notifications: nothing changes here. */
  subscribe(): () => void {
    return () => undefined;
  }
}

const refused = (automationId?: string): AgentError =>
  new AgentError(
    'automationsDisabled',
    automationId === undefined ? {} : { automationId },
    'they do not run here: this is a viewer',
  );
