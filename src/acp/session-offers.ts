import type { SessionConfigOption, SessionModeState, SessionUpdate } from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { AppServerConnectionError, JsonRpcError } from '../client/index.ts';
import { approvalPolicies, PromptCommandInfo } from '../protocol/index.ts';
import { configOptionsOf, nothingOffered, readOffered, withOption } from './choices.ts';
import { fileCommands } from './file-commands.ts';
import { modesOf } from './modes.ts';
import { ask, type Link } from './servers.ts';
import type { SeenThread } from './thread-events.ts';

const CommandsResult = v.looseObject({ data: v.array(PromptCommandInfo) });
const ConfigResult = v.looseObject({ config: v.record(v.string(), v.unknown()) });

/** Modes and options in the answer that opens a session. */
export interface SessionChoices {
  readonly modes: SessionModeState;
  readonly configOptions: SessionConfigOption[];
}

export interface SessionOffersOptions {
  readonly thread: Pick<SeenThread, 'id' | 'config'>;
  readonly emit: (update: SessionUpdate) => void;
  /** Whether the editor shows boolean options. */
  readonly hasSwitches: boolean;
}

/** Commands, modes and options that an editor shows for one session. */
export class SessionOffers {
  /** Configuration of the thread. */
  config: Readonly<Record<string, unknown>>;
  readonly #options: SessionOffersOptions;
  /** Commands as the editor knows them. */
  #commands = '';
  /** Choices of the agent, as last read. */
  #offered = nothingOffered;
  /** Options as the editor knows them. */
  #knownOptions = '';

  constructor(options: SessionOffersOptions) {
    this.#options = options;
    this.config = options.thread.config;
  }

  /** Whether an external agent has named the choices. */
  get isOfAgent(): boolean {
    return this.#offered.agent !== undefined;
  }

  /** Sends the commands about files, and the prompt commands of the workspace. The session also works without them. */
  async sendCommands(link: Link): Promise<void> {
    try {
      const { data } = await ask(link, 'command/list', {}, CommandsResult);
      const own = new Set(fileCommands.map(({ name }) => name));
      const others = data.filter(({ name }) => !own.has(name));
      const availableCommands = [
        ...fileCommands,
        ...others.map(({ name, description, argumentHint }) => ({
          ...{ name, description },
          ...(argumentHint !== undefined && { input: { hint: argumentHint } }),
        })),
      ];
      const commands = JSON.stringify(availableCommands);
      if (commands === this.#commands) return;
      this.#commands = commands;
      this.#options.emit({ sessionUpdate: 'available_commands_update', availableCommands });
    } catch (error) {
      ignoreLostServer(error);
    }
  }

  /** Modes and options that are known without a request to the built-in agent's provider. */
  async choices(link: Link): Promise<SessionChoices> {
    this.#offered = await readOffered(link.client, this.config, false);
    const modes = this.#modes(link);
    return { modes, configOptions: this.#configOptions(modes) };
  }

  /** Sends the options that have changed, with all models. The session also works without them. */
  async sendOptions(link: Link, isJoined: () => boolean): Promise<void> {
    try {
      this.#offered = await readOffered(link.client, this.config, true);
      if (isJoined()) this.#sendChanged(link);
    } catch (error) {
      ignoreLostServer(error);
    }
  }

  async setMode(link: Link, modeId: string): Promise<void> {
    await this.#set(link, 'mode', modeId);
    this.#sendChanged(link);
  }

  /** @returns all options @throws RequestError -32602 */
  async setOption(link: Link, id: string, value: unknown): Promise<SessionConfigOption[]> {
    await this.#set(link, id, value);
    const modes = this.#modes(link);
    // For editors that know modes only.
    if (id === 'mode') {
      const { currentModeId } = modes;
      this.#options.emit({ sessionUpdate: 'current_mode_update', currentModeId });
    }
    return this.#configOptions(modes);
  }

  async #set(link: Link, id: string, value: unknown): Promise<void> {
    const { thread } = this.#options;
    const params = { threadId: thread.id, config: withOption(this.config, id, value, this.#offered) };
    const { config } = await ask(link, 'thread/config/update', params, ConfigResult);
    this.config = config;
  }

  #modes({ approvalPolicy }: Link): SessionModeState {
    const own = approvalPolicies.find((policy) => policy === this.config['approvalPolicy']);
    const mode = this.config['mode'] === 'plan' ? 'plan' : 'default';
    return modesOf({ mode, approvalPolicy: own ?? approvalPolicy }, !this.isOfAgent);
  }

  /** Current options. Records them as known to the editor. */
  #configOptions(modes: SessionModeState): SessionConfigOption[] {
    const configOptions = configOptionsOf(modes, this.config, this.#offered, this.#options.hasSwitches);
    this.#knownOptions = JSON.stringify(configOptions);
    return configOptions;
  }

  #sendChanged(link: Link): void {
    const before = this.#knownOptions;
    const configOptions = this.#configOptions(this.#modes(link));
    if (this.#knownOptions !== before) this.#options.emit({ sessionUpdate: 'config_option_update', configOptions });
  }
}

/** Ignores a lost connection, which the next prompt reports. @throws any other error */
function ignoreLostServer(error: unknown): void {
  if (!(error instanceof JsonRpcError || error instanceof AppServerConnectionError)) throw error;
}
