"""Edits projected or allocated IR as a person would, from stdin to stdout.

    edit.py COMMAND [WORKER TEXT...] [, COMMAND ...]

TEXT must occur in exactly one line of its worker.

    swap W A B        exchange two lines
    move W A B        move line A directly after line B
    drop W A          remove line A
    insert W A TEXT   insert a line after line A
    replace W A B C   in line A, replace every B by C
    inline            every worker waits directly after its posts: receives are
                      posted where they were awaited, sends awaited where posted
    group             makes groups of inline posts: a send to a worker and the
                      next receive from it, if no computation is between them
"""
import re
import sys

POST = re.compile(r" = chimera\.post_(send|receive) .*?(?:to|from) (\d+) ")


class Worker:
    def __init__(self, lines):
        self.lines = lines

    def find(self, text):
        found = [i for i, line in enumerate(self.lines) if text in line]
        if len(found) != 1:
            sys.exit(f"expected one line with {text!r}, got {len(found)}")
        return found[0]

    def swap(self, a, b):
        i, j = self.find(a), self.find(b)
        self.lines[i], self.lines[j] = self.lines[j], self.lines[i]

    def move(self, a, b):
        line = self.lines.pop(self.find(a))
        self.lines.insert(self.find(b) + 1, line)

    def drop(self, a):
        self.lines.pop(self.find(a))

    def insert(self, a, text):
        self.lines.insert(self.find(a) + 1, f"      {text}\n")

    def replace(self, a, b, c):
        i = self.find(a)
        if b not in self.lines[i]:
            sys.exit(f"expected {b!r} in {self.lines[i]}")
        self.lines[i] = self.lines[i].replace(b, c)

    def wait_of(self, post):
        name = self.lines[post].split()[0]
        return next(i for i, line in enumerate(self.lines)
                    if f"chimera.wait {name} " in line)

    def inline(self):
        for line in list(self.lines):
            match = POST.search(line)
            if not match:
                continue
            post = self.lines.index(line)
            wait = self.wait_of(post)
            if match[1] == "send":
                self.lines.insert(post + 1, self.lines.pop(wait))
            else:
                self.lines.insert(wait - 1, self.lines.pop(post))

    def group(self):
        post = 0
        while post < len(self.lines):
            send = POST.search(self.lines[post])
            receive = post + 2
            while receive < len(self.lines) and not re.search(
                    r"chimera\.(forward|backward|post|all_reduce)",
                    self.lines[receive]):
                receive += 1
            other = receive < len(self.lines) and POST.search(
                self.lines[receive])
            if (send and other and send[1] == "send" and
                    other[1] == "receive" and send[2] == other[2]):
                self.make_group(post, receive)
            post += 1

    def make_group(self, send, receive):
        posts = [self.lines[send].strip(), self.lines[receive].strip()]
        names = [post.split()[0] for post in posts]
        sent, arriving = "!chimera.sending", posts[1].split(" : ")[1]
        types = f"{sent}, !chimera.arriving{arriving}"
        group = f"%group{names[0][1:]}"
        wait = self.lines.pop(self.wait_of(receive))
        self.lines.pop(receive)
        end = self.lines.pop(send + 1)
        self.lines[send:send + 1] = [
            f"      {group}:2 = chimera.group {{\n",
            f"        {posts[0]}\n", f"        {posts[1]}\n",
            f"        chimera.yield {', '.join(names)} : {types}\n",
            f"      }} : {types}\n",
            end.replace(f"wait {names[0]} ", f"wait {group}#0 "),
            wait.replace(f"wait {names[1]} ", f"wait {group}#1 ")]


def main():
    head, workers, tail = [], {}, []
    current = None
    for line in sys.stdin:
        if begin := re.match(r"    chimera\.worker (\d+) ", line):
            current = workers[begin[1]] = Worker([])
        if current is None:
            (tail if workers else head).append(line)
        else:
            current.lines.append(line)
            if line == "    }\n":
                current = None
    commands = [[]]
    for word in sys.argv[1:]:
        if word == ",":
            commands.append([])
        else:
            commands[-1].append(word)
    for name, *words in commands:
        if name in ("inline", "group"):
            for worker in workers.values():
                getattr(worker, name)()
        else:
            getattr(workers[words[0]], name)(*words[1:])
    lines = head + [l for w in workers.values() for l in w.lines] + tail
    sys.stdout.writelines(lines)


main()
