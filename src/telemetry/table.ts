/**
 * Every metric of Oratorio: the exposed names, the list in `docs/observability.md` (`npm run docs`), and the metrics that the dashboard for
 * Grafana may ask for. Names follow Prometheus: base units, `_total` for counters. No label has values that a user, a model
 * or a client makes up.
 */
import { counter, gauge, histogram, type Metric } from './metric.ts';

const waits = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const work = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600];
const starts = [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5, 10, 30, 60];
const people = [1, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600];

/** Metrics of the agent server: `GET /metrics` beside the Dashboard. */
export const agentMetrics = {
  info: gauge('oratorio_agent_info', 'Always 1; the version is in the label.', { version: 'of the agent server' }),
  activeTurns: gauge('oratorio_agent_active_turns', 'Turns that run or wait for an approval.'),
  pendingApprovals: gauge('oratorio_agent_pending_approvals', 'Approvals that wait for a decision.'),
  turns: counter('oratorio_agent_turns_total', 'Turns that have ended.', {
    status: '`completed`, `failed`, `cancelled`, `crashed` (left behind by a dead process)',
  }),
  turnsResumed: counter(
    'oratorio_agent_turns_resumed_total',
    'Turns that continued after the end of their agent server.',
    {
      reason: '`crash`, `restart`, `stop`, `upgrade`',
    },
  ),
  turnDuration: histogram('oratorio_agent_turn_duration_seconds', 'From the start of a turn to its end.', work),
  modelCalls: counter('oratorio_agent_model_calls_total', 'Requests to the model.', {
    outcome: '`completed`, `failed`, `cancelled`',
  }),
  modelCallDuration: histogram(
    'oratorio_agent_model_call_duration_seconds',
    'From a request to the model to the end of its answer.',
    work,
  ),
  firstSegment: histogram(
    'oratorio_agent_first_segment_seconds',
    'From a request to the model to the first piece of thinking or answer; requests answered by tool calls alone have none.',
    waits,
  ),
  tokens: counter('oratorio_agent_tokens_total', 'Tokens as the provider counted them.', {
    direction: '`input`, `output`',
  }),
  cachedInputTokens: counter(
    'oratorio_agent_cached_input_tokens_total',
    'Input tokens that came from the cache of the provider; part of the input.',
  ),
  reasoningTokens: counter('oratorio_agent_reasoning_tokens_total', 'Output tokens of reasoning; part of the output.'),
  cost: counter('oratorio_agent_cost_usd_total', 'Cost of requests to models in US dollars, where it is known.'),
  modelRetries: counter('oratorio_agent_model_retries_total', 'Answered requests that repeated failed ones.'),
  toolCalls: counter('oratorio_agent_tool_calls_total', 'Tool calls that have ended.', {
    tool: 'a built-in tool, `mcp`, `other`',
    outcome: '`completed`, `failed`, `declined`, `cancelled`',
  }),
  toolDuration: histogram('oratorio_agent_tool_duration_seconds', 'Run time of tool calls.', work, {
    tool: 'a built-in tool, `mcp`, `other`',
  }),
  approvals: counter('oratorio_agent_approvals_total', 'Approvals that were decided.', {
    decision: '`accept`, `acceptForSession`, `acceptAlways`, `decline`, `cancel`',
    decided_by: '`user`, `policy`, `timeout`',
  }),
  approvalWait: histogram('oratorio_agent_approval_wait_seconds', 'How long a turn waited for a decision.', people),
  traceEvents: counter('oratorio_agent_trace_events_total', 'Trace events that were stored.', {
    type: 'the trace types of `src/protocol/traces.ts`',
  }),
  traceEventsDropped: counter(
    'oratorio_agent_trace_events_dropped_total',
    'Trace events that were lost because the disk did not take them. They are in no other metric either.',
  ),
  tracedSessions: gauge('oratorio_agent_traced_sessions', 'Sessions with stored traces.'),
  storedTraceEvents: gauge('oratorio_agent_stored_trace_events', 'Stored trace events.'),
  mcpServers: gauge('oratorio_agent_mcp_servers', 'Servers of the Model Context Protocol by state.', {
    state: '`disabled`, `starting`, `ready`, `failed`, `restarting`, `stopped`',
  }),
  automations: gauge('oratorio_agent_automations', 'Cron jobs and tasks by state.', {
    state: '`paused`, `waiting`, `queued`, `running`, `backingOff`, `finished`',
  }),
  automationRuns: counter(
    'oratorio_agent_automation_runs_total',
    'Runs of cron jobs and tasks that have ended; one that was tried again counts each time.',
    {
      status: '`completed`, `failed`, `cancelled`, `missed`',
    },
  ),
  httpConnections: gauge('oratorio_agent_http_connections', 'Open connections of all its HTTP services.'),
  sseReaders: gauge('oratorio_agent_sse_readers', 'Open event streams.'),
  webSockets: gauge('oratorio_agent_web_sockets', 'Open WebSockets.'),
} as const satisfies Record<string, Metric<string> | Metric<never>>;

/** Metrics of the Hub: `GET /v1/metrics`. */
export const hubMetrics = {
  info: gauge('oratorio_hub_info', 'Always 1; the version is in the label.', { version: 'of the Hub' }),
  workspaces: gauge('oratorio_hub_workspaces', 'Known workspaces by state.', {
    state: '`stopped`, `starting`, `running`, `unhealthy`, `stopping`, `exited`',
  }),
  restartsInWindow: gauge(
    'oratorio_hub_restarts_in_window',
    'Automatic restarts in the current window of the restart policy, all workspaces.',
  ),
  workspaceState: gauge('oratorio_hub_workspace_state', 'Always 1; the state of the workspace is in the label.', {
    workspace: 'id of the workspace, as its log directory is named',
    state: 'as `oratorio list` names it: `ready`, `degraded`, `failing`, `gave up` …',
  }),
  workspaceHealthy: gauge(
    'oratorio_hub_workspace_healthy',
    'Whether the turns and tools of a workspace that runs work (1) or not (0); absent before its first turn.',
    { workspace: 'id of the workspace' },
  ),
  lastTurnAt: gauge('oratorio_hub_workspace_last_turn_timestamp_seconds', 'When the last turn ended.', {
    workspace: 'id of the workspace',
    status: '`completed`, `failed`, `cancelled`',
  }),
  failuresInARow: gauge(
    'oratorio_hub_workspace_turn_failures_in_a_row',
    'Turns that have failed since the last one that was completed.',
    { workspace: 'id of the workspace' },
  ),
  restarts: counter('oratorio_hub_restarts_total', 'Starts that the supervisor made by itself after a failure.'),
  transitions: counter('oratorio_hub_transitions_total', 'States that supervised actors have entered.', {
    machine: '`hub`, `agent-server`, `api-proxy`',
    state: 'a top-level state of the machine (`docs/machines`)',
  }),
  startDuration: histogram(
    'oratorio_hub_start_duration_seconds',
    'From the start of an agent server, or of taking one over, until it is ready.',
    starts,
    { ownership: '`managed`, `adopted`, `external`' },
  ),
  probeFailures: counter('oratorio_hub_probe_failures_total', 'Health checks that failed.'),
  events: counter('oratorio_hub_events_total', 'Events that were published.', {
    kind: 'the kinds of `docs/hub-api.md`',
  }),
  httpConnections: gauge('oratorio_hub_http_connections', 'Open connections.'),
  sseReaders: gauge('oratorio_hub_sse_readers', 'Open event streams.'),
  inspectorActive: gauge('oratorio_hub_inspector_active', 'Whether the inspection stream has viewers (1) or not (0).'),
} as const satisfies Record<string, Metric<string> | Metric<never>>;

/** Metrics of the review backend: `GET /api/v1/metrics`. Waiting work is counted in the database, all else in the process. */
export const reviewMetrics = {
  info: gauge('oratorio_review_info', 'Always 1; the version is in the label.', { version: 'of the review backend' }),
  jobs: gauge('oratorio_review_jobs', 'Jobs in the queue.', {
    kind: '`delivery`, `command`, `sync`, `write`, `cleanup`, `reconcile`',
    state: '`waiting`, `taken`',
  }),
  oldestJob: gauge('oratorio_review_oldest_job_seconds', 'How long the job that is due longest has waited.'),
  deadJobs: gauge('oratorio_review_dead_jobs', 'Jobs that were given up and are still stored.'),
  jobsRunning: gauge('oratorio_review_jobs_running', 'Jobs under way in this process.'),
  jobsEnded: counter('oratorio_review_jobs_ended_total', 'Jobs that have ended in this process.', {
    kind: '`delivery`, `command`, `sync`, `write`, `cleanup`, `reconcile`',
    result: '`completed`, `failed` (tried again), `dead` (given up), `lost` (another process has it)',
  }),
  runs: gauge('oratorio_review_runs', 'Reviews that have not ended.', { phase: '`waiting`, `active`' }),
  runsHere: gauge('oratorio_review_runs_here', 'Reviews that this process works on.'),
  writes: gauge('oratorio_review_writes', 'Writes to the source that were not sent.', {
    status: '`pending`, `failed`',
  }),
  deliveries: counter('oratorio_review_deliveries_total', 'Deliveries that this process has answered.', {
    outcome: '`queued`, `ignored`, `rejected`, `duplicate`, `pong`, `refused`',
  }),
  apiRequests: counter('oratorio_review_api_requests_total', 'Requests to the API of the source.'),
  httpConnections: gauge('oratorio_review_http_connections', 'Open connections.'),
  sseReaders: gauge('oratorio_review_sse_readers', 'Open event streams.'),
  inspectorActive: gauge(
    'oratorio_review_inspector_active',
    'Whether the inspection stream has viewers (1) or not (0).',
  ),
} as const satisfies Record<string, Metric<string> | Metric<never>>;

/** Metrics of the export to OpenTelemetry, in both; absent while it is off. */
export const exportMetrics = {
  spans: counter('oratorio_telemetry_spans_total', 'Spans by result.', {
    result: '`exported`, `failed` (the collector did not take them), `dropped` (the queue was full)',
  }),
  exports: counter('oratorio_telemetry_exports_total', 'Requests to the collector.', {
    outcome: '`completed`, `failed`',
  }),
} as const satisfies Record<string, Metric<string> | Metric<never>>;

/** Metrics of the process, in both, with the names that every Prometheus client uses. */
export const processMetrics = {
  cpu: counter('process_cpu_seconds_total', 'Processor time.'),
  memory: gauge('process_resident_memory_bytes', 'Resident memory.'),
  startTime: gauge('process_start_time_seconds', 'When the process started, Unix time.'),
  heapUsed: gauge('nodejs_heap_size_used_bytes', 'JavaScript heap in use.'),
  heapTotal: gauge('nodejs_heap_size_total_bytes', 'JavaScript heap that is set aside.'),
  busy: counter('nodejs_eventloop_busy_seconds_total', 'Time in which the event loop was busy.'),
} as const satisfies Record<string, Metric<string> | Metric<never>>;

/** All metrics, by the process that exposes them. */
export const metricTables = {
  agent: agentMetrics,
  hub: hubMetrics,
  review: reviewMetrics,
  export: exportMetrics,
  process: processMetrics,
} as const;
