/** All repositories of the lab. */
import type { Task } from '../task.ts';
import { c } from './c.ts';
import { python } from './python.ts';
import { shell } from './shell.ts';
import { typescript } from './typescript.ts';

export const tasks: readonly Task[] = [...typescript, ...python, ...c, ...shell];
