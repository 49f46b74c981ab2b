import * as v from 'valibot';
import type { DelegateOffers } from '../agent/index.ts';
import { plainText } from '../lib/index.ts';
import { type AgentOption, defaults } from '../protocol/index.ts';
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
      options: this.#options
        .filter(({ category }) => !ownCategories.has(category ?? ''))
        .slice(0, most)
        .flatMap((each) => offeredOption(each)),
      commands: this.#commands,
    };
  }

  /** @returns the parameters that set another option; `current`: the value is already set; undefined: the option is not offered */
  changeOption(id: string, value: string | boolean): object | 'current' | undefined {
    const option = this.#options.find((each) => each.id === id && !ownCategories.has(each.category ?? ''));
    if (!option) return undefined;
    if (option.currentValue === value) return 'current';
    if (typeof value === 'boolean') return isSwitch(option) ? { configId: id, type: 'boolean', value } : undefined;
    return valuesOf(option).includes(value) ? { configId: id, value } : undefined;
  }

  /** @returns the option to set; `current`: the agent has this value; undefined: it is not offered */
  change(
    category: 'model' | 'mode' | 'thought_level',
    value: string,
  ): { readonly configId: string } | 'current' | undefined {
    const option = this.#option(category);
    if (option?.currentValue === value) return 'current';
    if (option?.id === undefined || !valuesOf(option).includes(value)) return undefined;
    return { configId: option.id };
  }

  /** @returns the request that sets it; `current`: the agent has this value; undefined: it is not offered */
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
    const model = this.#option('model')?.currentValue;
    return typeof model === 'string' ? model : undefined;
  }

  #option(category: string): ConfigOption | undefined {
    return this.#options.find((option) => option.category === category);
  }
}

/** Options for which a thread has its own settings. */
const ownCategories: ReadonlySet<string> = new Set(['model', 'mode', 'thought_level']);

const isSwitch = ({ type, currentValue }: ConfigOption): boolean =>
  type === 'boolean' || typeof currentValue === 'boolean';

/** Describes an option for display, with texts of limited length. Leaves out an option without a usable id or value. */
function offeredOption(option: ConfigOption): AgentOption[] {
  const { id, name, description, category, currentValue: value } = option;
  if (id === undefined || value === undefined || !isShort(id) || (typeof value === 'string' && !isShort(value)))
    return [];
  const about = {
    ...{ id, value, name: shown(name ?? id) },
    ...(description !== undefined && { description: shown(description) }),
    ...(category !== undefined && isShort(category) && { category }),
  };
  if (isSwitch(option)) return typeof value === 'boolean' ? [about] : [];
  const values = choicesOf(option).flatMap(({ value: given, name: called }) =>
    given !== undefined && isShort(given) ? [{ id: given, name: shown(called ?? given) }] : [],
  );
  return typeof value === 'string' ? [{ ...about, values: values.slice(0, most) }] : [];
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
