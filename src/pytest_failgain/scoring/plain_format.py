"""The plain-text format: chat messages as headed turns, for models whose chat template is no use.

    ### System
    You book rooms.·

    ### User
    Book room 1.·

    ### Assistant
    book(room='1')·

    ### User
    TypeError: room must be int·

    ### Assistant

An action begins a line. A turn ends in a space (the dot above), a line break and an empty line.
The space is there because many tokenizers (those of Llama 3 and Qwen, say) make one token of a
closing bracket and the line break behind it: an action that stands in the context would not be the
tokens that it is scored as, and the model could not be seen to repeat it.
"""

from __future__ import annotations

# A heading is the role's name, whatever it is ("developer"), but a tool role is refused: results
# are then put into user turns and named as such, as for any template that has no such role.
PLAIN_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'tool' %}{{ raise_exception('no tool role') }}{% endif %}"
    "### {{ message['role'] | capitalize }}\n{{ message['content'] or '' }} \n\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}### Assistant\n{% endif %}"
)
