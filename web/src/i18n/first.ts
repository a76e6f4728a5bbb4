// Texts of the first run, and of the switch of the theme.

export const first = {
  'first.title': ['A society of agents, at your word', '一个听你吩咐的智能体社会'],
  'first.text': [
    'Ask for something. Root works on it, asks other agents for help where they are useful, and shows you every step. Whatever happens is kept and survives a crash.',
    '提出请求，root 会着手处理，必要时请其他智能体帮忙，每一步都看得见。发生的一切都会保存，崩溃也不会丢。',
  ],
  'first.offline': ['No model is set, so the offline model answers. These really work with it:', '没有设置模型，由离线模型回答。下面这些它真的能做：'],
  'first.model': ['Set a model', '设置模型'],
  'first.agent': ['Nothing has been said with {name} yet.', '还没有和 {name} 说过话。'],
  'first.files': ['How many files are here, by kind?', '这里有多少个文件，按类型统计？'],
  'first.files.hint': ['uses the file tools of the working folder', '使用工作文件夹的文件工具'],
  'first.sum': ['What is 15% of 240?', '240 的 15% 是多少？'],
  'first.sum.hint': ['exact arithmetic', '精确计算'],
  'first.time': ['What time is it in Tokyo and Berlin?', '东京和柏林现在几点？'],
  'first.time.hint': ['planned, done and verified in sub-threads', '在子线程里规划、执行、验证'],
  'theme.only.auto': ['as the system', '跟随系统'],
  'theme.only.light': ['light', '浅色'],
  'theme.only.dark': ['dark', '深色'],
} as const satisfies Record<string, readonly [en: string, zh: string]>
