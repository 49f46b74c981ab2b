import * as v from 'valibot';
import type { Tool, ToolResult } from '../tool.ts';
import { defineTool } from '../tools/index.ts';
import type { Library } from './library.ts';

export const skillToolName = 'Skill';

/** `Skill`: reads a skill where it lies; file tools refuse the places where two of three kinds of skills are. */
export function createSkillTool(library: Library): Tool {
  return defineTool({
    name: skillToolName,
    description:
      'Reads a skill of the list in your instructions: its whole text, or a file in its directory that the text names. Read it before you work on its subject.',
    isReadOnly: true,
    isExtra: true,
    parameters: v.object({
      name: v.pipe(v.string('a name of the list'), v.description('Name of the skill.')),
      file: v.pipe(
        v.optional(v.string('a path in the directory of the skill')),
        v.description('A file of the skill, relative to its directory. Default: its text.'),
      ),
    }),
    aliases: { name: ['skill', 'skill_name'], file: ['path'] },
    async run({ name, file }, { workspacePath }): Promise<ToolResult> {
      const body = library.skillBody(name, workspacePath);
      if (body === undefined) return { text: `Error: there is no skill ${name}.`, isError: true };
      if (file === undefined) return { text: body, isError: false };
      const read = library.skillFile(name, file, workspacePath);
      if ('text' in read) return { text: read.text, isError: false };
      return { text: `Error: ${file} ${read.problem}.`, isError: true };
    },
  });
}
