/**
 * The wire: every shape, error code, event kind and default of the product, declared once. Everybody may import it.
 * Never here: behaviour, I/O, or a type written by hand beside a schema that says the same.
 */
export * from './agents.ts';
export * from './appserver.ts';
export * from './automations.ts';
export * from './browser.ts';
export * from './checkpoints.ts';
export * from './dashboard.ts';
export * from './defaults.ts';
export * from './delegation.ts';
export * from './elicitation.ts';
export * from './exits.ts';
export * from './health.ts';
export * from './hosts.ts';
export * from './hub.ts';
export * from './hub-errors.ts';
export * from './hub-events.ts';
export * from './hub-threads.ts';
export * from './inbox.ts';
export * from './inspection.ts';
export * from './inspector.ts';
export * from './jsonrpc.ts';
export * from './known-providers.ts';
export * from './launch.ts';
export * from './library.ts';
export * from './mcp.ts';
export * from './models.ts';
export * from './moves.ts';
export * from './push.ts';
export * from './questions.ts';
export * from './review.ts';
export * from './sleep.ts';
export * from './threads.ts';
export * from './tools.ts';
export * from './traces.ts';
export * from './version.ts';
