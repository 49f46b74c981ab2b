/**
 * Automations: cron jobs and local tasks of a workspace. Rows of the database list them, the machines
 * `scheduler` and `automation` define their transitions, and a run is an ordinary turn of the runtime. The agent server has one
 * `Automations`; its faces bind the methods, the dashboard shows the state. Never here: permissions of clients, the execution
 * of a turn, other timers.
 */
export { Automations } from './automations.ts';
export type { Clock } from './clock.ts';
export type { AutomationsChange, AutomationsOptions, AutomationsSettings, ObservableAutomation } from './options.ts';
export { readAutomations, StoredAutomations } from './stored.ts';
