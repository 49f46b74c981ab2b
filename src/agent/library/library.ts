import type { InputPart } from '../../protocol/index.ts';
import { type AgentType, findAgentTypes } from './agents.ts';
import { commandIn, expand, findCommand, findCommands, type PromptCommand } from './commands.ts';
import { placesOf } from './places.ts';
import { findSkill, findSkills, type LibraryProblem, type Skill, skillBody, skillFile } from './skills.ts';

/** Skills, prompt commands and types of sub-agents of a user and a workspace. Reads the files at each call: they are small, and change. */
export class Library {
  readonly #home: string;

  /** @param home the user's home of Oratorio. Absolute */
  constructor(home: string) {
    this.#home = home;
  }

  skills(workspacePath: string): { readonly data: readonly Skill[]; readonly problems: readonly LibraryProblem[] } {
    const { skills, problems } = findSkills(placesOf('skills', this.#home, workspacePath));
    return {
      data: Array.from(skills.values(), ({ name, description, path }) => ({ name, description, path })),
      problems,
    };
  }

  /** Body of a skill; undefined: there is no such skill. */
  skillBody(name: string, workspacePath: string): string | undefined {
    const skill = this.#skill(name, workspacePath);
    return skill && skillBody(skill);
  }

  /** A file in the directory of a skill. */
  skillFile(
    name: string,
    file: string,
    workspacePath: string,
  ): { readonly text: string } | { readonly problem: string } {
    const skill = this.#skill(name, workspacePath);
    return skill ? skillFile(skill, file) : { problem: 'is not a skill' };
  }

  commands(workspacePath: string): {
    readonly data: readonly PromptCommand[];
    readonly problems: readonly LibraryProblem[];
  } {
    const { commands, problems } = findCommands(placesOf('commands', this.#home, workspacePath));
    return { data: Array.from(commands.values(), ({ template: _, ...command }) => command), problems };
  }

  agentTypes(workspacePath: string): {
    readonly data: readonly AgentType[];
    readonly problems: readonly LibraryProblem[];
  } {
    const { types, problems } = findAgentTypes(placesOf('agents', this.#home, workspacePath));
    return { data: [...types.values()], problems };
  }

  /** Text that a command stands for; undefined: there is no such command. */
  expand(name: string, argumentsText: string, workspacePath: string): string | undefined {
    const command = findCommand(placesOf('commands', this.#home, workspacePath), name);
    return command && expand(command.template, argumentsText);
  }

  /**
   * Gives references the text that they stand for, once and for all: the model gets the same text in later turns. A text that begins
   * with a known command becomes a reference; any other text stays unchanged.
   */
  resolve(input: readonly InputPart[], workspacePath: string): readonly InputPart[] {
    return input.map((part) => this.#resolved(part, workspacePath));
  }

  #resolved(part: InputPart, workspacePath: string): InputPart {
    if (part.type === 'commandRef') {
      const text = this.expand(part.name, part.argsText ?? '', workspacePath);
      return text === undefined ? part : { ...part, text };
    }
    if (part.type === 'skillRef') {
      const text = this.skillBody(part.name, workspacePath);
      return text === undefined ? part : { ...part, text };
    }
    if (part.type !== 'text' || !part.text.trimStart().startsWith('/')) return part;
    const found = commandIn(part.text);
    const text = found && this.expand(found.name, found.argumentsText, workspacePath);
    if (!found || text === undefined) return part;
    return { type: 'commandRef', name: found.name, argsText: found.argumentsText, rawText: part.text, text };
  }

  #skill(name: string, workspacePath: string) {
    return findSkill(placesOf('skills', this.#home, workspacePath), name);
  }
}
