import * as v from 'valibot';
import type { DelegateOffers } from '../agent/index.ts';
import { plainText } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { AvailableCommands, type ConfigOption, CurrentMode, SessionState } from './messages.ts';

const { offers: most, offerChars } = defaults.externalAgent;

/** Models, efforts and commands that an agent offers in a session. Its words are bounded and hold no control sequences. */
export class SessionOffers {
  #options: readonly ConfigOption[] = [];
  #modes: SessionState['modes'];
  #commands: DelegateOffers['commands'] = [];

  /** Stores the options and modes of the agent's response about the session. */
  take({ configOptions, modes }: SessionState): void {
    if (configOptions) this.#options = configOptions;
    if (modes) this.#modes = modes;
  }

  /** @returns false: an update about something else */
  note(update: { readonly sessionUpdate: string }): boolean {
    switch (update.sessionUpdate) {
      case 'config_option_update':
        this.take(v.parse(SessionState, update));
        return true;
      case 'current_mode_update':
        if (this.#modes) this.#modes = { ...this.#modes, ...v.parse(CurrentMode, update) };
        return true;
      case 'available_commands_update':
        this.#commands = commandsOf(update);
        return true;
      default:
        return false;
    }
  }

  get all(): DelegateOffers {
    const option = this.#option('mode');
    const modes = option
      ? choicesOf(option).map(({ value, name }) => ({ id: value, name }))
      : (this.#modes?.availableModes ?? []);
    return {
      models: valuesOf(this.#option('model')).slice(0, most).filter(isShort),
      modes: modes.slice(0, most).flatMap(({ id, name }) => {
        return id !== undefined && isShort(id) ? [{ id, name: shown(name ?? id) }] : [];
      }),
      commands: this.#commands,
    };
  }

  /** @returns the option to set; `current`: nothing is to be done; undefined: it is not offered */
  change(
    category: 'model' | 'mode' | 'thought_level',
    value: string,
  ): { readonly configId: string } | 'current' | undefined {
    const option = this.#option(category);
    if (option?.currentValue === value) return 'current';
    if (option?.id === undefined || !valuesOf(option).includes(value)) return undefined;
    return { configId: option.id };
  }

  /** @returns the request that sets it; `current`: nothing is to be done; undefined: it is not offered */
  changeMode(id: string): { readonly method: string; readonly params: object } | 'current' | undefined {
    if (this.#option('mode')) {
      const change = this.change('mode', id);
      return typeof change === 'object'
        ? { method: 'session/set_config_option', params: { ...change, value: id } }
        : change;
    }
    if (this.#modes?.currentModeId === id) return 'current';
    if (!this.#modes?.availableModes.some((mode) => mode.id === id)) return undefined;
    return { method: 'session/set_mode', params: { modeId: id } };
  }

  /** A change of mode was answered: agents do not always say so in an update. */
  noteMode(currentModeId: string): void {
    if (this.#modes) this.#modes = { ...this.#modes, currentModeId };
  }

  get model(): string | undefined {
    return this.#option('model')?.currentValue;
  }

  #option(category: string): ConfigOption | undefined {
    return this.#options.find((option) => option.category === category);
  }
}

/** Values of an option, those in groups too. */
export function valuesOf(option: ConfigOption | undefined): string[] {
  return choicesOf(option).flatMap(({ value }) => (value === undefined ? [] : [value]));
}

const choicesOf = (option: ConfigOption | undefined) =>
  (option?.options ?? []).flatMap((choice) => [choice, ...(choice.options ?? [])]);

/** A value is sent back unchanged: one that is too long to be shown is not offered. */
const isShort = (value: string): boolean => value.length <= offerChars && plainText(value) === value;

function commandsOf(update: unknown): DelegateOffers['commands'] {
  const parsed = v.safeParse(AvailableCommands, update);
  if (!parsed.success) return [];
  return parsed.output.availableCommands.slice(0, most).flatMap(({ name, description, input }) => {
    if (name === undefined || !/^[\w:.-]{1,100}$/.test(name)) return [];
    const hint = input?.hint;
    return [{ name, description: shown(description ?? ''), ...(hint !== undefined && { argumentHint: shown(hint) }) }];
  });
}

const shown = (text: string): string => plainText(text).replaceAll(/\s+/g, ' ').slice(0, offerChars);
