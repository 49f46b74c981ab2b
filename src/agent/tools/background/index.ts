/** Commands that run beyond the call that started them, and the tools to read, feed and stop them. */
export { BackgroundProcesses } from './background-processes.ts';
export { createProcessTools, stateOf } from './process-tools.ts';
