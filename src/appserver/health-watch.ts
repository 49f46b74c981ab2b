import { createActor } from 'xstate';
import {
  type EarlierHealth,
  type EndedTurn,
  healthOf,
  type ToolServers,
  workspaceHealthMachine,
} from '../../machines/index.ts';
import { modelHost, modelSettingsOf, type ThreadEvent } from '../agent/index.ts';
import { type Config, quotedPath } from '../config/index.ts';
import {
  type AgentInUse,
  type HealthReport,
  type LaunchDocument,
  type McpServerStatus,
  type ModelInUse,
  mcpToolProblemWords,
  type Problem,
  problemsOf,
  type SettingPlaces,
  type Turn,
} from '../protocol/index.ts';
import { lostHistory } from '../supervise/index.ts';
import type { Assembly } from './assembly.ts';

export interface HealthWatchOptions {
  readonly workspacePath: string;
  /** State of the workspace, below the home. */
  readonly stateDirectory: string;
  readonly incarnation: string;
  readonly config: Config;
  /** Places of the settings that a failed turn may blame. */
  readonly places: SettingPlaces;
  readonly launch: LaunchDocument | undefined;
  readonly assembly: Pick<Assembly, 'runtime' | 'traces' | 'agent' | 'onAgentChange' | 'sandbox'>;
  /** Called whenever the report may have changed. */
  readonly onChange: () => void;
}

/** Longest text of a failure in a report. */
const longestText = 1_000;
const mostServers = 64;

/** Judges the health of the workspace of this process (machine `workspace-health`). */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  readonly #servers = new Map<string, McpServerStatus>();
  readonly #actor;
  #model: ModelInUse;
  #agent: AgentInUse;
  #leave: () => void = () => {};

  constructor(options: HealthWatchOptions) {
    this.#options = options;
    this.#model = configuredModel(options);
    this.#agent = options.assembly.agent();
    const earlier: EarlierHealth | null = options.launch?.health ?? null;
    this.#actor = createActor(workspaceHealthMachine, { id: 'workspace-health', input: { earlier } });
  }

  start(): void {
    const { assembly, onChange } = this.#options;
    // Not among the actors of the inspector: the inspector shows running work, and is empty when no turn runs.
    this.#actor.start();
    this.#actor.subscribe(onChange);
    const leaves = [assembly.runtime.feed.join(this.#hear), assembly.runtime.feed.watchApprovals(onChange)];
    this.#leave = () => {
      for (const leave of leaves) leave();
    };
    assembly.sandbox.onChange(onChange);
    assembly.onAgentChange(() => {
      this.#agent = assembly.agent();
      onChange();
    });
  }

  stop(): void {
    this.#leave();
    this.#actor.stop();
  }

  turnEnded(turn: Turn): void {
    const ended = endedTurnOf(turn);
    // The provider is loaded now, so its own word for the model is at hand.
    void this.#askModel().then(() => {
      if (this.#actor.getSnapshot().status === 'active') this.#actor.send({ type: 'TURN.ENDED', turn: ended });
    });
  }

  /** A request was refused because the disk took nothing: no turn could begin. */
  storageFailed(reason: string): void {
    const message = reason.slice(0, longestText);
    const turn: EndedTurn = { status: 'failed', endedAt: new Date().toISOString(), code: 'storageFailed', message };
    if (this.#actor.getSnapshot().status === 'active') this.#actor.send({ type: 'TURN.ENDED', turn });
  }

  /** Returns the current health. */
  report(): HealthReport {
    const snapshot = this.#actor.getSnapshot();
    const { lastTurn, failure, failuresInARow, tools } = snapshot.context;
    const { turns } = this.#options.assembly.runtime;
    const { resumedCount: turnsResumed } = turns;
    const { costUsd, unpricedCount } = this.#options.assembly.traces.totals();
    return {
      incarnation: this.#options.incarnation,
      health: healthOf(snapshot),
      lastTurn,
      failure,
      failuresInARow,
      // An external agent chooses its own model.
      model: this.#agent.kind === 'oratorio' ? this.#model : null,
      agent: this.#agent,
      mcpServers: { total: tools.total, down: [...tools.down], toolProblems: [...tools.toolProblems] },
      pendingApprovals: turns.approvals().length,
      ...(turnsResumed > 0 && { turnsResumed }),
      costUsd: unpricedCount > 0 ? null : costUsd,
      sandbox: this.#options.assembly.sandbox.state,
    };
  }

  /** Problems of the turns and tools of this workspace, the most urgent first. */
  problems(): Problem[] {
    return problemsOf({
      state: 'running',
      workspace: quotedPath(this.#options.workspacePath),
      lastError: null,
      rest: null,
      report: this.report(),
      configProblem: null,
      places: this.#options.places,
      isConfigChanged: false,
      restrictedSettings: [],
      lostHistory: lostHistory(this.#options.stateDirectory) ?? null,
      serviceNotes: [],
    });
  }

  readonly #hear = (event: ThreadEvent): void => {
    if (event.method === 'mcp/status/updated') this.#noteServer(event.params.server);
  };

  #noteServer(server: McpServerStatus): void {
    this.#servers.set(server.name, server);
    this.#actor.send({ type: 'TOOLS.CHANGED', tools: toolServersOf([...this.#servers.values()]) });
  }

  /** The model of the next turn. @throws the error that prevents loading its provider */
  async modelInUse(): Promise<ModelInUse> {
    const { provider, model: name } = await this.#options.assembly.runtime.describe();
    this.#model = { ...this.#model, provider, name };
    return this.#model;
  }

  async #askModel(): Promise<void> {
    try {
      await this.modelInUse();
    } catch {
      // The provider cannot be loaded: the end of the turn reports the reason, and the configured names stay.
    }
  }
}

/** Names of the settings, for as long as no provider was loaded. */
function configuredModel({ config, launch }: HealthWatchOptions): ModelInUse {
  const settings = modelSettingsOf(config, launch?.upstream);
  return { name: settings.model, provider: settings.main.kind, host: modelHost(settings) };
}

function endedTurnOf({ status, error, completedAt, startedAt }: Turn): EndedTurn {
  return {
    status: status === 'completed' || status === 'failed' ? status : 'cancelled',
    endedAt: completedAt ?? startedAt,
    code: error?.code.slice(0, 100) ?? null,
    message: error?.message.slice(0, longestText) ?? null,
  };
}

const downStates: ReadonlySet<McpServerStatus['startupState']> = new Set(['failed', 'restarting', 'needsLogin']);

function toolServersOf(servers: readonly McpServerStatus[]): ToolServers {
  const enabled = servers.filter((server) => server.enabled && server.startupState !== 'stopped');
  const down = enabled.filter(({ startupState }) => downStates.has(startupState));
  return {
    total: enabled.length,
    down: down.slice(0, mostServers).map(({ name, lastError, startupState }) => ({
      name,
      error: lastError?.slice(0, longestText) ?? null,
      ...(startupState === 'needsLogin' && { needsLogin: true }),
    })),
    toolProblems: enabled
      .flatMap(({ name, toolProblems = [] }) =>
        toolProblems.map((problem) => `${name}: ${mcpToolProblemWords(problem)}`),
      )
      .slice(0, mostServers)
      .map((sentence) => sentence.slice(0, longestText)),
  };
}
